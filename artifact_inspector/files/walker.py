"""Walks a cache directory and classifies its files: kernels, other files of a cache, unknown files.

Nothing is imported, loaded or executed. Paths written in files and links to directories are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from artifact_inspector.files.ahead_of_time import NAME as C_NAME
from artifact_inspector.files.artifact import (
    CONTAINER,
    CONTAINER_SUFFIXES,
    EMPTY_DIRECTORY,
    LAUNCH_RECORD,
    LINKED_DIRECTORY,
    SUFFIXES,
    CacheContents,
    File,
    OtherFile,
    Problem,
    join_display_path,
    sanitize,
)
from artifact_inspector.files.metadata import find_artifacts
from artifact_inspector.files.reader import describe_error, scan_directory
from artifact_inspector.files.records import MANIFEST, CompileRecord, read_entry_record, read_records
from artifact_inspector.files.tensor_values import VALUES_DIRECTORY

MAX_DEPTH = 64
"""Levels of directories that are searched."""


def kernel_directories(root: Path, report: Callable[[Problem], None]) -> tuple[list[str], list[str]]:
    """The directories that may have kernels, and the archives and traces, both below `root` and sorted."""
    directories, containers = [], []
    for path, folders, names in os.walk(
        root, onerror=lambda error: report(Problem(sanitize(str(error.filename)), describe_error(error)))
    ):
        folders[:] = [name for name in folders if not name.startswith(_TEMPORARY_NAMES) and name != VALUES_DIRECTORY]
        relative = os.path.relpath(path, root)
        if folders and relative.count(os.sep) >= MAX_DEPTH - 1:
            report(Problem(sanitize(relative), f"directories more than {MAX_DEPTH} levels deep are not read"))
            folders.clear()
        if any(name.rpartition(".")[2] in SUFFIXES and name != MANIFEST and name[:7] != "__grp__" for name in names):
            directories.append(relative)
        containers += [os.path.normpath(f"{relative}/{name}") for name in names if name.endswith(CONTAINER_SUFFIXES)]
    return sorted(directories), sorted(containers)


def walk(root: Path, contents: CacheContents, directories: Sequence[str] = ()) -> None:
    """Collect the contents of a directory and its subdirectories, or of some directories below it only."""
    pending = [(root / directory, directory, MAX_DEPTH) for directory in directories] or [(root, ".", 0)]
    too_deep = 0
    records = _read_parents(root, directories, contents)
    while pending:
        directory, display_directory, depth = pending.pop()
        names: list[str] = []
        specials: list[tuple[str, bool]] = []
        try:
            with scan_directory(directory) as listing:
                entries = list(listing)
                for entry in entries:
                    path = join_display_path(display_directory, sanitize(entry.name))
                    try:
                        if entry.is_dir():
                            inside = _is_searchable(entry, path, contents)
                            too_deep += inside and depth == MAX_DEPTH
                            if inside and depth < MAX_DEPTH:
                                pending.append((directory / entry.name, path, depth + 1))
                        elif entry.is_file():
                            names.append(entry.name)
                        else:
                            specials.append((entry.name, entry.is_symlink()))
                    except OSError as error:
                        contents.problems.append(Problem(path, describe_error(error)))
        except OSError as error:
            contents.add_missing(display_directory, describe_error(error))
            continue
        if not entries and depth > 0:
            contents.others.append(OtherFile(display_directory, EMPTY_DIRECTORY))
        if MANIFEST in names:
            records |= _read_manifest(directory, display_directory, contents)
        stems = _classify_files(directory, display_directory, names, records, contents)
        for name, is_link in specials:
            is_broken = is_link and not os.path.exists(directory / name)  # noqa: PTH110 - False for a loop
            path = join_display_path(display_directory, sanitize(name))
            _record_special_file(name, path, stems, contents, is_broken=is_broken)
    if too_deep and not directories:
        contents.add_missing(".", f"{too_deep} directories are nested more than {MAX_DEPTH} levels deep")


def _read_parents(root: Path, directories: Sequence[str], contents: CacheContents) -> dict[str, CompileRecord]:
    """The records in the directories above some."""
    records: dict[str, CompileRecord] = {}
    for parent in sorted({str(parent) for directory in directories for parent in PurePosixPath(directory).parents}):
        if (root / parent / MANIFEST).exists():
            records |= _read_manifest(root / parent, parent, contents)
    return records


def _read_manifest(directory: Path, display_directory: str, contents: CacheContents) -> dict[str, CompileRecord]:
    """The record of a directory; a link is reported and not followed."""
    if (directory / MANIFEST).is_symlink():
        path = join_display_path(display_directory, MANIFEST)
        contents.problems.append(Problem(path, "a link: the record is not read"))
    return read_records(directory / MANIFEST, display_directory)


def _is_searchable(entry: os.DirEntry[str], path: str, contents: CacheContents) -> bool:
    """Whether a directory is to be searched; others are recorded in `contents`."""
    if entry.is_symlink():
        contents.others.append(OtherFile(path, LINKED_DIRECTORY))
    elif entry.name.startswith(_TEMPORARY_NAMES):
        contents.others.append(OtherFile(path, _TEMPORARY))
    elif entry.name == VALUES_DIRECTORY:
        contents.others.append(OtherFile(path, "values of recorded tensors"))
    else:
        return entry.name != "__pycache__"  # written by Python
    return False


def _record_special_file(name: str, path: str, stems: set[str], contents: CacheContents, *, is_broken: bool) -> None:
    """Record a pipe, a device, a socket, or a link to one of them or to nothing.

    Args:
        stems: of the kernels in the directory; a special file in place of one of their stages is a problem.
    """
    stem, _, suffix = name.rpartition(".")
    if is_broken:
        contents.problems.append(Problem(path, "a broken link"))
    elif suffix in SUFFIXES and stem in stems:
        contents.problems.append(Problem(path, "not a regular file: it is not read"))
    else:
        contents.others.append(OtherFile(path, "not a regular file"))


_TEMPORARY_NAMES = ("tmp.pid_", ".compiling-")
_TEMPORARY = "temporary file of a running or killed compile"
_KNOWN_FILES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r".*\.tmp(?:\.pid_.*)?|\.inspect-kernel\.json\..*", _TEMPORARY),
        (r"inspect-kernel\.json", LAUNCH_RECORD),
        (r"lock|.*\.lock", "lock"),
        (r".*\.autotune\.json|.*\.best_config", "autotune results"),
        (r".*\.launch_metadata", "launch metadata"),
        (r"(?:cuda|hip)_utils.*\.(?:so|pyd)", "driver utilities"),
        (r".*\.(?:so|pyd|dll|dylib)", "launcher"),
        (r".*\.(?:spv|zebin)", "device binary of an Intel GPU, not read"),
        (r".*\.(?:cutile|tileirbc)", "Tile IR of cuTile: give the file to `inspect-kernel`"),
        (r"inductor_output_code.*|output_code\.py", "Inductor's source: give it to `inspect-kernel compile`"),
        (r"raw\.jsonl|(?:compile_directory|chromium_events)\.json", "log of torch.compile by tlparse"),
        (r".*\.hsaco_path", "path of a binary elsewhere, not followed"),
    )
)


def _classify_files(
    directory: Path,
    display_directory: str,
    names: list[str],
    records: Mapping[str, CompileRecord],
    contents: CacheContents,
) -> set[str]:
    """Group the files of one directory into kernels, other files of a cache, and unknown files.

    Returns:
        The kernels' stems.
    """
    kernels: dict[str, dict[str, File]] = {}
    unknown_files = []
    for name in names:
        stem, _, suffix = name.rpartition(".")
        if name.startswith("__grp__") and suffix == "json":
            continue  # a list of sibling names, or of paths on another machine
        if stem and suffix in SUFFIXES and not stem.endswith(".autotune") and name != MANIFEST:
            kernels.setdefault(stem, {})[suffix] = directory / name
            continue
        kind = next((kind for pattern, kind in _KNOWN_FILES if pattern.fullmatch(name)), None)
        if kind is None and (name.endswith(CONTAINER_SUFFIXES) or C_NAME.fullmatch(name)):
            kind = CONTAINER
        if kind is None:
            unknown_files.append(name)
        else:
            contents.others.append(OtherFile(join_display_path(display_directory, sanitize(name)), kind))
    # for a single entry, the record is in the parent directory
    record = read_entry_record(directory) if kernels and display_directory == "." else records.get(display_directory)
    for stem, files in kernels.items():
        artifacts = find_artifacts(directory, display_directory, stem, files, contents)
        contents.artifacts.extend(artifacts if record is None else map(record.apply_to, artifacts))
    if unknown_files and not kernels:
        contents.others.append(OtherFile(display_directory, "directory without Triton files"))
        return set()
    for name in unknown_files:
        suffix = sanitize(name.rpartition(".")[2])
        path = join_display_path(display_directory, sanitize(name))
        contents.others.append(OtherFile(path, f"unknown: .{suffix}"))
    unknown_suffixes = {
        suffix for stem, _, suffix in (name.rpartition(".") for name in unknown_files) if stem in kernels
    }
    for suffix in sorted(unknown_suffixes):
        contents.problems.append(Problem(display_directory, f"unknown stage .{sanitize(suffix)} is ignored"))
    return set(kernels)

"""Walks a cache directory and classifies its files: kernels, other files of a cache, unknown files.

Nothing is imported, loaded or executed. Paths written in files and links to directories are not followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from artifact_inspector.files.artifact import SUFFIXES, File, Found, Other, Problem, join, printable
from artifact_inspector.files.beside import MANIFEST, Asked, read_record_of, read_records
from artifact_inspector.files.metadata import find_artifacts
from artifact_inspector.files.reading import fault

MAX_DEPTH = 6
"""Levels of directories that are searched."""


def walk(root: Path, found: Found) -> None:
    """Collect the contents of a directory and its subdirectories."""
    pending = [(root, ".", 0)]
    too_deep = 0
    records: dict[str, Asked] = {}
    while pending:
        directory, shown, depth = pending.pop()
        try:
            with os.scandir(directory) as listing:
                entries = list(listing)
        except OSError as error:
            found.problems.append(Problem(shown, fault(error)))
            continue
        if not entries and depth > 0:
            found.others.append(Other(shown, "empty directory"))
        names: list[str] = []
        specials: list[os.DirEntry[str]] = []
        for entry in entries:
            place = join(shown, printable(entry.name))
            try:
                if entry.is_dir():
                    inside = _is_cache(entry, place, found)
                    too_deep += inside and depth == MAX_DEPTH
                    if inside and depth < MAX_DEPTH:
                        pending.append((Path(entry.path), place, depth + 1))
                elif entry.is_file():
                    names.append(entry.name)
                else:
                    specials.append(entry)
            except OSError as error:
                found.problems.append(Problem(place, fault(error)))
        if MANIFEST in names:
            records |= read_records(directory / MANIFEST, shown)
        stems = _sort_out(directory, shown, names, records, found)
        for entry in specials:
            _tell_special(entry, join(shown, printable(entry.name)), stems, found)
    if too_deep:
        found.problems.append(
            Problem(".", f"{too_deep} directories are nested more than {MAX_DEPTH} levels deep")
        )


def _is_cache(entry: os.DirEntry[str], place: str, found: Found) -> bool:
    """Whether a directory is to be searched; others are recorded in `found`."""
    if entry.is_symlink():
        found.others.append(Other(place, "link to a directory, not followed"))
    elif entry.name.startswith(("tmp.pid_", ".compiling-")):
        found.others.append(Other(place, _TEMPORARY))
    else:
        return entry.name != "__pycache__"  # written by Python
    return False


def _tell_special(entry: os.DirEntry[str], place: str, stems: set[str], found: Found) -> None:
    """Record a pipe, a device, a socket, or a link to one of them or to nothing.

    Args:
        stems: of the kernels in the directory; a special file in place of one of their stages is a problem.
    """
    stem, _, suffix = entry.name.rpartition(".")
    if entry.is_symlink() and not os.path.exists(entry.path):  # noqa: PTH110 - a Path for each would cost
        found.problems.append(Problem(place, "a broken link"))
    elif suffix in SUFFIXES and stem in stems:
        found.problems.append(Problem(place, "not a regular file: it is not read"))
    else:
        found.others.append(Other(place, "not a regular file"))


_OUR_OWN = (MANIFEST,)
_TEMPORARY = "temporary file of a running or killed compile"
_OTHERS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r".*\.tmp(?:\.pid_.*)?|\.inspect-kernel\.json\..*", _TEMPORARY),
        (r"inspect-kernel\.json", "manifest of compiled kernels"),
        (r"lock|.*\.lock", "lock"),
        (r".*\.autotune\.json|.*\.best_config", "autotune results"),
        (r"(?:cuda|hip)_utils.*\.(?:so|pyd)", "driver utilities"),
        (r".*\.(?:so|pyd|dll|dylib)", "launcher"),
        (r".*\.hsaco_path", "path of a binary elsewhere, not followed"),
    )
)


def _sort_out(
    directory: Path, shown: str, names: list[str], records: Mapping[str, Asked], found: Found
) -> set[str]:
    """Group the files of one directory into kernels, other files of a cache, and unknown files.

    Returns:
        The kernels' stems.
    """
    kernels: dict[str, dict[str, File]] = {}
    strangers = []
    for name in names:
        stem, _, suffix = name.rpartition(".")
        if name.startswith("__grp__") and suffix == "json":
            continue  # a list of sibling names, or of paths on another machine
        if stem and suffix in SUFFIXES and not stem.endswith(".autotune") and name not in _OUR_OWN:
            kernels.setdefault(stem, {})[suffix] = directory / name
            continue
        kind = next((kind for pattern, kind in _OTHERS if pattern.fullmatch(name)), None)
        if kind is None:
            strangers.append(name)
        else:
            found.others.append(Other(join(shown, printable(name)), kind))
    # for a single entry, the record is in the parent directory
    asked = read_record_of(directory) if kernels and shown == "." else records.get(shown)
    for stem, files in kernels.items():
        made = find_artifacts(directory, shown, stem, files, found)
        found.artifacts.extend(made if asked is None else map(asked.added_to, made))
    if strangers and not kernels:
        found.others.append(Other(shown, "directory without Triton files"))
        return set()
    unknown = set()
    for name in strangers:
        stem, _, suffix = name.rpartition(".")
        found.others.append(Other(join(shown, printable(name)), f"unknown: .{printable(suffix)}"))
        if stem in kernels:
            unknown.add(suffix)
    for suffix in sorted(unknown):
        found.problems.append(Problem(shown, f"unknown stage .{printable(suffix)} is ignored"))
    return set(kernels)

"""Kernels in a Triton cache directory of any version.

Layouts of Triton 2.0 to 3.9 for both vendors, Inductor's copy, dump directories, single entries and
directories of caches are searched in the same way. A kernel is the files of one directory that share a stem,
whatever the name of the directory.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import (
    CONTAINER,
    CUDA_FILES,
    EMPTY_DIRECTORY,
    HIP_FILES,
    REMARKS,
    SUFFIXES,
    Artifact,
    Cache,
    CacheContents,
    File,
    MemoryFile,
    OtherFile,
    Problem,
    StageText,
    sanitize,
)
from artifact_inspector.files.image import LAYOUT
from artifact_inspector.files.metadata import find_artifacts, is_for_intel
from artifact_inspector.files.reader import read_binary, read_head, read_remarks, read_stage
from artifact_inspector.files.records import read_entry_record
from artifact_inspector.files.remote import STANDARD_INPUT, address_of, fetch
from artifact_inspector.files.tile_ir import MAX_BYTES, TILE_IR, ttir_of
from artifact_inspector.files.walker import walk

__all__ = [
    "REMARKS", "Artifact", "Cache", "MemoryFile", "OtherFile", "Problem", "StageText", "cache_in_memory",
    "default_directory", "open_cache", "open_file", "open_first", "open_location", "read_binary", "read_remarks",
    "read_stage",
]  # fmt: skip

_ENTRY = re.compile(r"[0-9a-f]{64}|[A-Z2-7]{52}|[\w-]{43}")
_IR = ("source", "glir", "ttir", "ttgir", "llir")
_REMEDY = "Specify a cache directory, or set TRITON_CACHE_DIR."


def default_directory() -> Path:
    """The directory that Triton itself uses: TRITON_CACHE_DIR, TRITON_HOME, or in the home directory.

    Raises:
        CacheError: none is set and there is no home directory.
    """
    if directory := os.environ.get("TRITON_CACHE_DIR", "").strip():
        return Path(directory)
    try:
        home = os.environ.get("TRITON_HOME", "").strip() or Path.home()
    except RuntimeError:
        raise CacheError("No home directory was found for .triton/cache.", _REMEDY) from None
    return Path(home, ".triton", "cache")


def open_cache(path: str | os.PathLike[str] | None = None) -> Cache:
    """The contents of a cache directory or of an archive.

    Args:
        path: a cache, one of its entries, or a directory of caches; an archive or a trace of these; None for
            the default cache.

    Raises:
        CacheError: it is missing, is not a directory, or cannot be read. Errors in subdirectories are
            problems of the result instead.
    """
    root = default_directory() if path is None else Path(path)
    name = sanitize(str(root))
    try:
        root = root.expanduser()
        os.scandir(root).close()
    except (FileNotFoundError, RuntimeError, ValueError):
        raise CacheError(f"There is no directory {name}.", _REMEDY) from None
    except NotADirectoryError:
        if _is_container(root):
            return _open_container(root)
        parent = sanitize(str(root.parent))
        raise CacheError(f"{name} is a file, not a cache directory.", f"Specify its directory: {parent}") from None
    except OSError as error:
        problem = f"The directory {name} cannot be read: {error.strerror or error}."
        raise CacheError(problem, "Check its permissions, or copy it.") from None
    return _walked(root)


def open_location(path: Path) -> Cache:
    """The cache at a local path, on standard input (`-`) or at an fsspec address (`s3://bucket/cache`).

    Raises:
        CacheError: as for `open_cache` and `open_file`, or it cannot be copied here.
    """
    address = None if os.path.lexists(path) else address_of(path)
    if address is None:
        return open_file(path) if os.path.isfile(path) else open_cache(path)  # noqa: PTH113 - pathlib raises on a long name
    local = fetch(address)
    name = "standard input" if address == STANDARD_INPUT else sanitize(address)
    if local.is_file() and _is_container(local):
        return _open_container(local, name)
    return replace(_walked(local) if local.is_dir() else open_file(local), container=name)


def local_path(path: Path) -> Path:
    """The path itself, or a copy of standard input or of an fsspec address."""
    address = None if os.path.lexists(path) else address_of(path)
    return path if address is None else fetch(address)


def open_part(root: Path, directories: Sequence[str], archive: str) -> Cache:
    """Some directories of a cache, or one archive or trace of it (`.`: the root is it); paths as in all of it."""
    if directories:
        return _walked(root, is_unpacked=True, directories=directories)
    return open_file(root) if archive == "." else _open_container(root, members=(archive,))


def open_first(path: Path | None, fewest: int, count: int) -> tuple[Cache, int] | None:
    """The first directories of a large cache by name, and the number of all; None if it has less than `fewest`."""
    root = default_directory() if path is None else path
    try:
        with os.scandir(root) as listing:
            names = [x.name for x in listing if x.name[0].isalnum() and x.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):
        return None
    return None if len(names) < fewest else (_walked(root, directories=sorted(names)[:count]), len(names))


def _walked(root: Path, *, is_unpacked: bool = False, directories: Sequence[str] = ()) -> Cache:
    if not (is_unpacked or directories) and (root / LAYOUT).is_file():
        return _open_container(root)
    contents = CacheContents()
    walk(root, contents, directories)
    packed = [] if is_unpacked else sorted(file.path for file in contents.others if file.kind == CONTAINER)
    if packed and not contents.artifacts:
        return _open_container(root, members=tuple(path for path in packed if _is_container(root / path)))
    for path in packed:
        if not path.endswith(".mlir"):
            contents.missing.append(Problem(path, "an archive or a trace beside kernels: give its path to read it"))
    missing = [*sorted(contents.missing), *_find_missing(contents)]
    entries, others, problems = sorted(contents.artifacts, key=_sort_key), contents.others, contents.problems
    return Cache(root, tuple(entries), tuple(sorted(others)), tuple(sorted(problems)), missing=tuple(missing))


def _find_missing(contents: CacheContents) -> Iterator[Problem]:
    """What compiles left half of, as far as no other problem names it."""
    ends = [
        next((suffix for suffix in reversed(_IR) if suffix in artifact.files), "metadata")
        for artifact in contents.artifacts
        if not (artifact.files.keys() & (CUDA_FILES | HIP_FILES) or is_for_intel(artifact.metadata))
        if _is_entry(artifact.directory)
    ]
    if ends:
        stages = ", ".join(f"{count} at {stage}" for stage, count in sorted(Counter(ends).items()))
        yield Problem(".", f"{len(ends)} of {len(contents.artifacts)} kernels have no machine code; they end: {stages}")
    empty = sum(file.kind == EMPTY_DIRECTORY and _is_entry(file.path) for file in contents.others)
    if empty:
        yield Problem(".", f"{empty} directories are empty, as failed compiles leave them")


def _is_entry(directory: str) -> bool:
    """Whether a directory has a name that Triton gave it."""
    return _ENTRY.fullmatch(directory.rpartition("/")[2]) is not None


def _is_container(path: Path) -> bool:
    """Whether a file is an archive, a compressed file or a trace."""
    from artifact_inspector.files.containers import container_kind  # zipfile and tarfile: a sixth of this import

    return container_kind(path) is not None


def _open_container(path: Path, name: str | None = None, members: tuple[str, ...] = ()) -> Cache:
    """The kernels in an archive, a compressed file or a trace, or in those of a directory."""
    from artifact_inspector.files.containers import unpack

    container = sanitize(str(path)) if name is None else name
    unpacked = unpack(path, container, members)
    cache = _walked(unpacked.root, is_unpacked=True)
    problems = tuple(sorted((*cache.problems, *unpacked.problems)))
    return replace(cache, problems=problems, container=container, missing=(*unpacked.problems, *cache.missing))


def open_file(path: str | os.PathLike[str]) -> Cache:
    """One file of a kernel, with the metadata beside it if any, as a cache of one entry.

    Args:
        path: a stage or a binary, which is then the only source; or the metadata, which selects all files of
            the kernel.

    Raises:
        CacheError: it is none of these, or does not exist.
    """
    file = Path(path)
    suffix = file.suffix.removeprefix(".")
    display_name = sanitize(str(file))
    if not file.is_file():
        raise CacheError(f"There is no file {display_name}.", _REMEDY)
    if suffix not in SUFFIXES and _is_container(file):
        return _open_container(file)
    if suffix not in SUFFIXES or file.name.startswith("__grp__") or file.stem.endswith(".autotune"):
        kinds = ", ".join(f".{kind}" for kind in sorted(SUFFIXES))
        remedy = f"Those end in {kinds}. Archives (.zip, .tar, .gz, .zst) and traces (.ndjson) are read too."
        if read_head(file, len(TILE_IR)) == TILE_IR:
            return cache_in_memory(file.stem, {"ttir": ttir_of(read_head(file, MAX_BYTES)).encode()})
        raise CacheError(f"{display_name} is not a file of a compiled kernel.", remedy)
    suffixes = sorted(SUFFIXES) if suffix == "json" else [suffix, "json"]
    candidates = {kind: file.with_name(f"{file.stem}.{kind}") for kind in suffixes}
    files: dict[str, File] = {kind: other_file for kind, other_file in candidates.items() if other_file.is_file()}
    contents = CacheContents()
    record = read_entry_record(file.parent)
    artifacts = find_artifacts(file.parent, ".", file.stem, files, contents)
    contents.artifacts.extend(artifacts if record is None else map(record.apply_to, artifacts))
    return Cache(file.parent, tuple(contents.artifacts), tuple(contents.others), tuple(contents.problems))


def cache_in_memory(stem: str, contents: Mapping[str, bytes]) -> Cache:
    """A kernel from files in memory as a cache of one entry; unknown suffixes are ignored.

    Args:
        contents: suffix → content as in a cache; the metadata is `json`.
    """
    memory_files = {
        name: MemoryFile(f"{stem}.{name}", content) for name, content in contents.items() if name in SUFFIXES
    }
    digest = hashlib.sha256(b"".join(memory_files[suffix].content for suffix in sorted(memory_files)))
    cache = CacheContents()
    if memory_files:
        cache.artifacts.extend(find_artifacts(Path(digest.hexdigest()), ".", stem, {**memory_files}, cache))
    return Cache(Path(), tuple(cache.artifacts), tuple(cache.others), tuple(cache.problems))


def _sort_key(artifact: Artifact) -> tuple[str, ...]:
    arch = "" if artifact.target is None else artifact.target.arch
    return (artifact.display_name, arch, artifact.hash, artifact.directory, artifact.stem)

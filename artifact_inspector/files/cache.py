"""Kernels in a Triton cache directory of any version.

Layouts of Triton 2.0 to 3.9 for both vendors, Inductor's copy, dump directories, single entries and
directories of caches are searched in the same way. A kernel is the files of one directory that share a stem,
whatever the name of the directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import (
    REMARKS,
    SUFFIXES,
    Artifact,
    Cache,
    File,
    Found,
    HeldFile,
    Other,
    Problem,
    StageText,
    printable,
)
from artifact_inspector.files.beside import read_record_of
from artifact_inspector.files.metadata import find_artifacts
from artifact_inspector.files.reading import read_binary, read_remarks, read_stage
from artifact_inspector.files.walking import walk

__all__ = [
    "REMARKS",
    "Artifact",
    "Cache",
    "HeldFile",
    "Other",
    "Problem",
    "StageText",
    "default_directory",
    "hold_files",
    "open_cache",
    "open_file",
    "read_binary",
    "read_remarks",
    "read_stage",
]

_NAME_ONE = "Specify a cache directory, or set TRITON_CACHE_DIR."


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
        raise CacheError("No home directory was found for .triton/cache.", _NAME_ONE) from None
    return Path(home, ".triton", "cache")


def open_cache(path: str | os.PathLike[str] | None = None) -> Cache:
    """The contents of a cache directory, searched at most six levels deep.

    Args:
        path: a cache, one of its entries, or a directory of caches; None for the default cache.

    Raises:
        CacheError: it is missing, is not a directory, or cannot be read. Errors in subdirectories are
            problems of the result instead.
    """
    root = default_directory() if path is None else Path(path)
    try:
        root = root.expanduser()
        os.scandir(root).close()
    except (FileNotFoundError, RuntimeError, ValueError):
        raise CacheError(f"There is no directory {printable(str(root))}.", _NAME_ONE) from None
    except NotADirectoryError:
        raise CacheError(
            f"{printable(str(root))} is a file, not a cache directory.",
            f"Specify its directory: {printable(str(root.parent))}",
        ) from None
    except OSError as error:
        raise CacheError(
            f"The directory {printable(str(root))} cannot be read: {error.strerror or error}.",
            "Check its permissions, or copy it.",
        ) from None
    found = Found()
    walk(root, found)
    entries = sorted(found.artifacts, key=_order)
    return Cache(root, tuple(entries), tuple(sorted(found.others)), tuple(sorted(found.problems)))


def open_file(path: str | os.PathLike[str]) -> Cache:
    """One file of a kernel, with the metadata beside it if any, as a cache of one entry.

    Args:
        path: a stage or a binary, which is then the only source; or the metadata, which selects all files of
            the kernel.

    Raises:
        CacheError: it is none of these, or does not exist.
    """
    place = Path(path)
    suffix = place.suffix.removeprefix(".")
    shown = printable(str(place))
    if not place.is_file():
        raise CacheError(f"There is no file {shown}.", _NAME_ONE)
    if suffix not in SUFFIXES or place.name.startswith("__grp__"):
        kinds = ", ".join(f".{kind}" for kind in sorted(SUFFIXES))
        raise CacheError(f"{shown} is not a file of a compiled kernel.", f"Those end in {kinds}.")
    wanted = sorted(SUFFIXES) if suffix == "json" else [suffix, "json"]
    beside = {kind: place.with_name(f"{place.stem}.{kind}") for kind in wanted}
    files: dict[str, File] = {kind: file for kind, file in beside.items() if file.is_file()}
    found = Found()
    asked = read_record_of(place.parent)
    made = find_artifacts(place.parent, ".", place.stem, files, found)
    found.artifacts.extend(made if asked is None else map(asked.added_to, made))
    return Cache(place.parent, tuple(found.artifacts), tuple(found.others), tuple(found.problems))


def hold_files(stem: str, contents: Mapping[str, bytes]) -> Cache:
    """A kernel from files in memory as a cache of one entry; unknown suffixes are ignored.

    Args:
        contents: suffix → content as in a cache; the metadata is `json`.
    """
    held = {
        suffix: HeldFile(f"{stem}.{suffix}", content)
        for suffix, content in contents.items()
        if suffix in SUFFIXES
    }
    digest = hashlib.sha256(b"".join(held[suffix].content for suffix in sorted(held)))
    files: dict[str, File] = {**held}
    found = Found()
    if files:
        found.artifacts.extend(find_artifacts(Path(digest.hexdigest()), ".", stem, files, found))
    return Cache(Path(), tuple(found.artifacts), tuple(found.others), tuple(found.problems))


def _order(artifact: Artifact) -> tuple[str, ...]:
    arch = "" if artifact.target is None else artifact.target.arch
    return (artifact.display_name, arch, artifact.hash, artifact.directory, artifact.stem)

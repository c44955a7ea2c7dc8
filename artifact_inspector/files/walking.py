"""What lies in a cache directory: kernels, things that belong to a cache, and strangers.

Nothing found is imported, loaded or executed, no path written in a file is followed, and links to
directories stay closed.
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
"""Levels of directories that are looked into."""


def walk(root: Path, found: Found) -> None:
    """Gather what lies in a directory and below."""
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
        found.problems.append(Problem(".", f"{too_deep} directories lie more than {MAX_DEPTH} levels down"))


def _is_cache(entry: os.DirEntry[str], place: str, found: Found) -> bool:
    """Whether a directory is one to look into; one that is not is named."""
    if entry.is_symlink():
        found.others.append(Other(place, "link to a directory, not followed"))
    elif entry.name.startswith(("tmp.pid_", ".compiling-")):
        found.others.append(Other(place, _TEMPORARY))
    else:
        return entry.name != "__pycache__"  # which Python leaves beside any program that was run there
    return False


def _tell_special(entry: os.DirEntry[str], place: str, stems: set[str], found: Found) -> None:
    """Name a pipe, a device, a socket, or a link that leads to one or nowhere.

    Args:
        stems: of the kernels beside it; where one of their stages should be, it is missed.
    """
    stem, _, suffix = entry.name.rpartition(".")
    if entry.is_symlink() and not os.path.exists(entry.path):  # noqa: PTH110 - a Path for each would cost
        found.problems.append(Problem(place, "a link that leads nowhere"))
    elif suffix in SUFFIXES and stem in stems:
        found.problems.append(Problem(place, "no regular file: it is not read"))
    else:
        found.others.append(Other(place, "no regular file"))


_OUR_OWN = (MANIFEST,)
_TEMPORARY = "temporary file of a compile that runs or was killed"
_OTHERS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r".*\.tmp(?:\.pid_.*)?|\.inspect-kernel\.json\..*", _TEMPORARY),
        (r"inspect-kernel\.json", "manifest of what was compiled"),
        (r"lock|.*\.lock", "lock"),
        (r".*\.autotune\.json|.*\.best_config", "autotune results"),
        (r"(?:cuda|hip)_utils.*\.(?:so|pyd)", "driver utilities"),
        (r".*\.(?:so|pyd|dll|dylib)", "launcher"),
        (r".*\.hsaco_path", "path of a binary kept elsewhere, not followed"),
    )
)


def _sort_out(
    directory: Path, shown: str, names: list[str], records: Mapping[str, Asked], found: Found
) -> set[str]:
    """Share the files of one directory out among kernels, other things and strangers.

    Returns:
        The kernels' stems.
    """
    kernels: dict[str, dict[str, File]] = {}
    strangers = []
    for name in names:
        stem, _, suffix = name.rpartition(".")
        if name.startswith("__grp__") and suffix == "json":
            continue  # a list of sibling names, or of paths that were true elsewhere
        if stem and suffix in SUFFIXES and not stem.endswith(".autotune") and name not in _OUR_OWN:
            kernels.setdefault(stem, {})[suffix] = directory / name
            continue
        kind = next((kind for pattern, kind in _OTHERS if pattern.fullmatch(name)), None)
        if kind is None:
            strangers.append(name)
        else:
            found.others.append(Other(join(shown, printable(name)), kind))
    # an entry alone: its record lies beside it
    asked = read_record_of(directory) if kernels and shown == "." else records.get(shown)
    for stem, files in kernels.items():
        made = find_artifacts(directory, shown, stem, files, found)
        found.artifacts.extend(made if asked is None else map(asked.added_to, made))
    if strangers and not kernels:
        found.others.append(Other(shown, "directory with files that are none of Triton's"))
        return set()
    unknown = set()
    for name in strangers:
        stem, _, suffix = name.rpartition(".")
        found.others.append(Other(join(shown, printable(name)), f"unknown: .{printable(suffix)}"))
        if stem in kernels:
            unknown.add(suffix)
    for suffix in sorted(unknown):
        found.problems.append(Problem(shown, f"unknown stage .{printable(suffix)} is passed over"))
    return set(kernels)

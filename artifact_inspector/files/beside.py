"""Information about cache entries beside their own files: the request, and the time of writing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.files.artifact import Artifact, join, printable
from artifact_inspector.files.reading import read_content
from artifact_inspector.model import TritonVersion

MANIFEST = "inspect-kernel.json"
"""The record that `compile` and `capture` write beside their entries."""
MOST_RECORDS = 16 << 20
"""Maximum bytes of a record; the record of 10,000 compiles has 6 million."""


class Asked(NamedTuple):
    """What the tool's record adds to an entry's metadata."""

    constants: Mapping[str, object]
    triton: str | None
    place: str | None

    def added_to(self, artifact: Artifact) -> Artifact:
        """The artifact with this information. Replaces a Triton version that names only a release."""
        told = artifact.triton_version
        is_vague = told is not None and ("/" in told or told.count(".") < 2)
        if is_vague and told is not None and self.triton is not None and told.fits(self.triton):
            told = TritonVersion(printable(self.triton))
        return replace(artifact, constants=self.constants, place=self.place, triton_version=told)


def read_records(path: Path, shown: str) -> dict[str, Asked]:
    """Directory of an entry → the record of its request; empty for an unreadable record.

    Args:
        shown: the directory of the record, relative to the cache directory.
    """
    try:
        entries = json.loads(read_content(path, MOST_RECORDS))["entries"]
        return {
            join(shown, entry["directory"].replace("\\", "/")): _asked(entry)
            for entry in entries
            if isinstance(entry.get("directory"), str)
        }
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def read_record_of(entry: Path) -> Asked | None:
    """The record beside an entry; None if there is none."""
    place = entry.absolute()
    return read_records(place.parent / MANIFEST, ".").get(place.name)


def _asked(entry: Mapping[str, object]) -> Asked:
    constants = entry.get("constants")
    told = [one if isinstance(one, str) else None for one in (entry.get("triton"), entry.get("place"))]
    return Asked(constants if isinstance(constants, dict) else {}, *told)


def time_of(artifact: Artifact) -> float | None:
    """Time of the newest file of an entry, in seconds since 1970; None if no file can be read."""
    return max((found.st_mtime for found in _stats(artifact)), default=None)


def size_of(artifact: Artifact) -> int | None:
    """Bytes of all files of an entry; None if no file can be read."""
    sizes = [found.st_size for found in _stats(artifact)]
    return sum(sizes) if sizes else None


def _stats(artifact: Artifact) -> Iterator[os.stat_result]:
    for file in artifact.files.values():
        if isinstance(file, Path):
            with suppress(OSError):
                yield file.stat()

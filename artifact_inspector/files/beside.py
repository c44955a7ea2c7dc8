"""What a cache says of its entries beside their own files: what was asked for, and when it was written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from artifact_inspector.files.artifact import Artifact, join
from artifact_inspector.files.reading import read_content

__all__ = ["MANIFEST", "read_constants", "size_of", "time_of"]

MANIFEST = "inspect-kernel.json"
"""What `compile` and `capture` record beside the entries that they make."""
MOST_RECORDS = 64 << 20
"""Bytes of a record; one of 10,000 compiles has 6 million."""


def read_constants(path: Path, shown: str) -> dict[str, Mapping[str, object]]:
    """Directory of an entry → its constants; none of a record that cannot be read.

    Args:
        shown: the directory of the record, from the cache directory.
    """
    try:
        entries = json.loads(read_content(path, MOST_RECORDS))["entries"]
        return {
            join(shown, entry["directory"].replace("\\", "/")): entry["constants"]
            for entry in entries
            if isinstance(entry.get("directory"), str) and isinstance(entry.get("constants"), dict)
        }
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def time_of(artifact: Artifact) -> float | None:
    """When the newest file of an entry was written, in seconds since 1970; None where no file tells."""
    return max((found.st_mtime for found in _stats(artifact)), default=None)


def size_of(artifact: Artifact) -> int | None:
    """Bytes of all files of an entry; None where no file tells."""
    sizes = [found.st_size for found in _stats(artifact)]
    return sum(sizes) if sizes else None


def _stats(artifact: Artifact) -> Iterator[os.stat_result]:
    for file in artifact.files.values():
        if isinstance(file, Path):
            with suppress(OSError):
                yield file.stat()

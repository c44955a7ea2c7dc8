"""Information about cache entries beside their own files: the request, and the time of writing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.files.artifact import Artifact, join_display_path, sanitize
from artifact_inspector.files.reader import read_content
from artifact_inspector.model import TritonVersion

MANIFEST = "inspect-kernel.json"
"""The record that `compile` and `capture` write beside their entries."""
MAX_RECORD_BYTES = 64 << 20
"""Maximum bytes of a record; the record of 10,000 compiles has 6 million. Values of tensors have their own files."""


class CompileRecord(NamedTuple):
    """What the tool's record adds to an entry's metadata."""

    constants: Mapping[str, object]
    triton: str | None
    requested_kernel: str | None

    def apply_to(self, artifact: Artifact) -> Artifact:
        """The artifact with this information. Replaces a Triton version that names only a release."""
        version = artifact.triton_version
        if version is not None and not version.is_exact and self.triton and version.may_match(self.triton):
            version = TritonVersion(sanitize(self.triton))
        kernel = self.requested_kernel
        return replace(artifact, constants=self.constants, requested_kernel=kernel, triton_version=version)


def read_records(path: Path, display_directory: str) -> dict[str, CompileRecord]:
    """Directory of an entry → the record of its request; empty for an unreadable record.

    Args:
        display_directory: the directory of the record, relative to the cache directory.
    """
    try:
        entries = json.loads(read_content(path, MAX_RECORD_BYTES, follow_links=False))["entries"]
        return {
            join_display_path(display_directory, entry["directory"].replace("\\", "/")): _parse_record(entry)
            for entry in entries
            if isinstance(entry.get("directory"), str)
        }
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def read_entry_record(entry: Path) -> CompileRecord | None:
    """The record beside an entry; None if there is none."""
    directory = entry.absolute()
    return read_records(directory.parent / MANIFEST, ".").get(directory.name)


def _parse_record(entry: Mapping[str, object]) -> CompileRecord:
    constants = entry.get("constants")
    strings = [value if isinstance(value, str) else None for value in (entry.get("triton"), entry.get("place"))]
    types = entry.get("types")
    texts = [text for text in types if isinstance(text, str)] if isinstance(types, list) else []
    # a launch compiles an argument that is 1 as a constant
    ones = {text.partition("=")[0]: 1 for text in texts if text.endswith(":1")}
    return CompileRecord({**ones, **(constants if isinstance(constants, dict) else {})}, *strings)


def artifact_time(artifact: Artifact) -> float | None:
    """Time of the newest file of an entry, in seconds since 1970; None if no file can be read."""
    return max((stat_result.st_mtime for stat_result in _stats(artifact)), default=None)


def artifact_size(artifact: Artifact) -> int | None:
    """Bytes of all files of an entry; None if no file can be read."""
    sizes = [stat_result.st_size for stat_result in _stats(artifact)]
    return sum(sizes) if sizes else None


def _stats(artifact: Artifact) -> Iterator[os.stat_result]:
    for file in artifact.files.values():
        if isinstance(file, Path):
            with suppress(OSError):
                yield file.stat()

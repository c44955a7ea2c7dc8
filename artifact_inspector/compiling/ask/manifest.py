"""`inspect-kernel.json` in a cache directory: what was asked for, and what became of it.

An object with `schema_version` and `entries`, one for each kernel, target, configuration and Triton
version that was ever asked for there, the newest answer of each. Triton itself does not read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.errors import CacheError
from artifact_inspector.files.reading import read_content
from artifact_inspector.files.writing import write_text

__all__ = ["MANIFEST", "describe", "read_manifest", "record"]

MANIFEST = "inspect-kernel.json"
SCHEMA_VERSION = 1
_IDENTITY = ("place", "target", "triton", "config", "types", "constants", "options")


def read_manifest(directory: Path) -> list[dict[str, Any]]:
    """The entries of a cache directory's manifest; none where there is none that can be read."""
    try:
        document = json.loads(read_content(directory / MANIFEST))
    except (OSError, ValueError, RecursionError):
        return []
    entries = document.get("entries") if isinstance(document, dict) else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def record(directory: Path, results: Iterable[CompileResult]) -> None:
    """Add results to the manifest of a directory; the file is replaced in one step."""
    entries = {_identity(entry): entry for entry in read_manifest(directory)}
    for result in results:
        if result.usage:
            continue  # nothing was compiled
        entry = describe(result, directory)
        before = entries.get(_identity(entry), {})
        if result.cached and "seconds" in before:
            entry["seconds"] = before["seconds"]  # what the compile took, not the look-up
        entries[_identity(entry)] = entry
    text = json.dumps({"schema_version": SCHEMA_VERSION, "entries": list(entries.values())}, indent=1)
    with suppress(CacheError):  # the kernels are there all the same
        write_text(directory / MANIFEST, text + "\n")


def describe(result: CompileResult, directory: Path) -> dict[str, Any]:
    """One entry of the manifest."""
    made = result.directory
    return {
        "kernel": result.kernel,
        "place": result.place,
        "target": result.target.arch,
        "triton": result.triton,
        "config": result.config,
        "types": list(result.types),
        "constants": dict(result.constants),
        "options": dict(result.options),
        "seconds": round(result.seconds, 3),
        "directory": None if made is None else os.path.relpath(made, directory),
        "message": result.message,
    }


def _identity(entry: dict[str, Any]) -> str:
    return json.dumps([entry.get(name) for name in _IDENTITY], sort_keys=True)

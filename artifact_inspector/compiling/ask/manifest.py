"""`inspect-kernel.json` in a cache directory: what was asked for, and what became of it.

An object with `schema_version` and `entries`, one for each kernel, target, configuration and Triton
version that was ever asked for there, the newest answer of each; and with `launches`, those that a captured
or a measured program made, as `compiling.arguments` writes them, each with the `hash`, `kernel` and `target`
of what it launched, and `tuning` where only an autotuner did: `inspect-kernel predict CACHE` and `rank CACHE`
run them on paper.
Triton itself does not read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from artifact_inspector.compiling.ask.result import CompileResult
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.beside import MANIFEST, MOST_RECORDS
from artifact_inspector.files.reading import read_content
from artifact_inspector.files.writing import write_text
from artifact_inspector.model.limits import LAUNCHES

_ONE_AT_A_TIME = Lock()
"""Threads of one process may compile into one directory."""
SCHEMA_VERSION = 1
MOST_LAUNCHES = LAUNCHES.default
"""That are kept; the newest."""
CAPTURED_AT = "captured at "
"""In front of the line of a launch: the place of a kernel that cannot be imported (defined in a function)."""
_IDENTITY = ("place", "target", "triton", "config", "types", "constants", "options")


def read_manifest(directory: Path) -> list[dict[str, Any]]:
    """The entries of a cache directory's manifest; none where there is none that can be read."""
    return _rows(directory, "entries")


def read_launches(directory: Path) -> list[dict[str, Any]]:
    """The launches that a cache directory's manifest has."""
    return _rows(directory, "launches")


def made_directory(out: Path) -> Path:
    """A cache directory to compile into, made if it is missing.

    Raises:
        UsageError: it cannot be had, or has a manifest that cannot be read, whose rows would be lost.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot write to {out}: {error.strerror}.", "Name another directory.") from error
    if _document(out) is None:
        raise UsageError(
            f"{out / MANIFEST} cannot be read, and what it records would be lost.",
            "Move it away, or name another directory.",
        )
    return out.resolve()


def _rows(directory: Path, key: str) -> list[dict[str, Any]]:
    return [_checked(row) for row in (_document(directory) or {}).get(key, ()) if isinstance(row, dict)]


_KINDS: Mapping[str, type] = {
    "place": str, "kernel": str, "target": str, "directory": str, "hash": str, "types": list,
    "constants": dict, "options": dict,
}  # fmt: skip
"""What a value is where it is there; the record may be a stranger's."""


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """The row without what is of another kind than we write."""
    kept: dict[str, Any] = {key: one for key, one in row.items() if isinstance(one, _KINDS.get(key, object))}
    if "types" in kept:
        kept["types"] = [one for one in kept["types"] if isinstance(one, str) and "=" in one]
    return kept


def _document(directory: Path) -> dict[str, Any] | None:
    """What a directory's manifest holds, nothing where there is none; None where it cannot be read."""
    try:
        found = json.loads(read_content(directory / MANIFEST, MOST_RECORDS))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    is_one = isinstance(found, dict) and all(
        isinstance(found.get(key, []), list) for key in ("entries", "launches")
    )
    return found if is_one else None


def record(
    directory: Path, results: Iterable[CompileResult], launches: Iterable[Mapping[str, Any]] = ()
) -> None:
    """Add results and launches to the manifest of a directory; the file is replaced in one step."""
    with _ONE_AT_A_TIME:
        _record(directory, results, launches)


def _record(directory: Path, results: Iterable[CompileResult], launches: Iterable[Mapping[str, Any]]) -> None:
    if _document(directory) is None:
        return  # somebody else's by now
    known = {json.dumps(one): one for one in (*read_launches(directory), *map(dict, launches))}
    entries = {_identity(entry): entry for entry in read_manifest(directory)}
    for result in results:
        if result.usage:
            continue  # nothing was compiled
        entry = describe(result, directory)
        before = entries.get(_identity(entry), {})
        if result.cached and "seconds" in before:
            entry["seconds"] = before["seconds"]  # what the compile took, not the look-up
        entries[_identity(entry)] = entry
    text = _text(list(entries.values()), list(known.values())[-MOST_LAUNCHES:])
    with suppress(CacheError):  # the kernels are there all the same
        write_text(directory / MANIFEST, text)


def _text(entries: list[dict[str, Any]], launches: list[dict[str, Any]]) -> str:
    """The manifest of the newest rows, so many that it can be read again."""
    document: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "entries": entries}
    if launches:
        document["launches"] = launches
    text = json.dumps(document, indent=1) + "\n"
    if len(text) <= MOST_RECORDS or not (entries or launches):
        return text
    return _text(entries[(len(entries) + 1) // 2 :], launches[(len(launches) + 1) // 2 :])


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
        **({} if result.details is None else {"details": result.details}),
    }


def _identity(entry: dict[str, Any]) -> str:
    return json.dumps([entry.get(name) for name in _IDENTITY], sort_keys=True)

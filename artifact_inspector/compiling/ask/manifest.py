"""Read and write `inspect-kernel.json`, the record of compiles and launches in a cache directory.

It is an object with two lists. `entries` has one element per requested kernel, target, configuration and
Triton version, with the newest result. `launches` has the launches of captured and measured programs, as
`compiling.arguments` writes them, each with `hash`, `kernel` and `target` of its kernel, and `tuning` if only
an autotuner made it. `inspect-kernel predict CACHE` and `rank CACHE` simulate these launches. Triton does not
read the file.
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
"""Serialises writes: threads of one process may compile into the same directory."""
SCHEMA_VERSION = 1
MOST_LAUNCHES = LAUNCHES.default
"""Number of launches kept in a record, the newest ones."""
CAPTURED_AT = "captured at "
"""Prefix of the place of a kernel that cannot be imported, because it is defined in a function; the line of a
launch follows."""
_IDENTITY = ("place", "target", "triton", "config", "types", "constants", "options")


def read_manifest(directory: Path) -> list[dict[str, Any]]:
    """The entries of a cache directory's manifest; empty without a readable one."""
    return _rows(directory, "entries")


def read_launches(directory: Path) -> list[dict[str, Any]]:
    """The launches of a cache directory's manifest; empty without a readable one."""
    return _rows(directory, "launches")


def made_directory(out: Path) -> Path:
    """A cache directory to compile into, created if it is missing.

    Raises:
        UsageError: it cannot be created, or has an unreadable manifest, whose rows would be lost.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot write to {out}: {error.strerror}.", "Name another directory.") from error
    if _document(out) is None:
        raise UsageError(
            f"{out / MANIFEST} cannot be read, and its contents would be lost.",
            "Move it away, or name another directory.",
        )
    return out.resolve()


def _rows(directory: Path, key: str) -> list[dict[str, Any]]:
    return [_checked(row) for row in (_document(directory) or {}).get(key, ()) if isinstance(row, dict)]


_KINDS: Mapping[str, type] = {
    "place": str, "kernel": str, "target": str, "directory": str, "hash": str, "types": list,
    "constants": dict, "options": dict,
}  # fmt: skip
"""Expected type of each value; the record may come from an untrusted cache."""


def _checked(row: dict[str, Any]) -> dict[str, Any]:
    """The row without values of unexpected types."""
    kept: dict[str, Any] = {key: one for key, one in row.items() if isinstance(one, _KINDS.get(key, object))}
    if "types" in kept:
        kept["types"] = [one for one in kept["types"] if isinstance(one, str) and "=" in one]
    return kept


def _document(directory: Path) -> dict[str, Any] | None:
    """The contents of a directory's manifest, empty if there is none; None if it cannot be read."""
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
    """Add results and launches to the manifest of a directory; the file is replaced atomically."""
    with _ONE_AT_A_TIME:
        _record(directory, results, launches)


def _record(directory: Path, results: Iterable[CompileResult], launches: Iterable[Mapping[str, Any]]) -> None:
    if _document(directory) is None:
        return  # it became unreadable: another program writes it
    known = {json.dumps(one): one for one in (*read_launches(directory), *map(dict, launches))}
    entries = {_identity(entry): entry for entry in read_manifest(directory)}
    for result in results:
        if result.usage:
            continue  # the request was refused before a compile
        entry = describe(result, directory)
        before = entries.get(_identity(entry), {})
        if result.cached and "seconds" in before:
            entry["seconds"] = before["seconds"]  # the duration of the compile, not of the lookup
        entries[_identity(entry)] = entry
    text = _text(list(entries.values()), list(known.values())[-MOST_LAUNCHES:])
    with suppress(CacheError):  # the kernels are usable without the manifest
        write_text(directory / MANIFEST, text)


def _text(entries: list[dict[str, Any]], launches: list[dict[str, Any]]) -> str:
    """The manifest as JSON, with older rows dropped until it is small enough to read again."""
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

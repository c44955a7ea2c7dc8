"""Read and write `inspect-kernel.json`, the record of compiles and launches in a cache directory.

It is an object with two lists. `entries` has one element per requested kernel, target, configuration and
Triton version, with the newest result. `launches` has the launches of captured and measured programs, as
`compiling.arguments` writes them, each with `hash`, `kernel` and `target` of its kernel, and `tuning` if only
an autotuner made it. `inspect-kernel predict CACHE` and `rank CACHE` simulate these launches. The values of
large tensors are in files of their own, see `files.tensor_values`. Triton does not read the file.

No launch is dropped to keep the file small. If it would become too large to read again, it stays as it is, and
an error says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from artifact_inspector.compiling.ask.request import CompileResult
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.reader import read_content
from artifact_inspector.files.records import MANIFEST, MAX_RECORD_BYTES
from artifact_inspector.files.tensor_values import store_arguments
from artifact_inspector.files.writer import write_text

_WRITE_LOCK = Lock()
"""Serialises writes: threads of one process may compile into the same directory."""
SCHEMA_VERSION = 1
MAX_DETAIL_CHARACTERS = 20_000
"""Characters of compiler output kept for one entry: the last ones."""
CAPTURED_PREFIX = "captured at "
"""Prefix of the place of a kernel that is defined in a function, so that it cannot be imported; the line of a launch
follows."""
_IDENTITY_KEYS = ("place", "target", "triton", "config", "types", "constants", "options")


def read_manifest(directory: Path) -> list[dict[str, Any]]:
    """The entries of a cache directory's manifest; empty without a readable one."""
    return _read_rows(directory, "entries")


def read_launches(directory: Path) -> list[dict[str, Any]]:
    """The launches of a cache directory's manifest; empty without a readable one."""
    return _read_rows(directory, "launches")


def read_launches_below(root: Path, directories: Iterable[str]) -> list[tuple[dict[str, Any], Path]]:
    """The launches of a cache and of the caches below it, each with the cache that recorded it.

    Args:
        directories: of the entries, relative to the root.
    """
    roots = dict.fromkeys([root, *(root / parent for parent in dict.fromkeys(map(os.path.dirname, directories)))])
    return [(row, recorded) for recorded in roots for row in read_launches(recorded)]


def group_launches(root: Path, directories: Iterable[str]) -> dict[str, list[tuple[dict[str, Any], Path]]]:
    """Hash of a kernel → its launches as `read_launches_below` returns them."""
    grouped: dict[str, list[tuple[dict[str, Any], Path]]] = {}
    for row, recorded in read_launches_below(root, directories):
        grouped.setdefault(str(row.get("hash")), []).append((row, recorded))
    return grouped


def create_directory(out: Path) -> Path:
    """A cache directory to compile into, created if it is missing.

    Raises:
        UsageError: it cannot be created, or has an unreadable manifest, whose rows would be lost.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot write to {out}: {error.strerror}.", "Name another directory.") from error
    if _read_document(out) is None:
        raise UsageError(
            f"{out / MANIFEST} cannot be read, and its contents would be lost.",
            "Move it away, or name another directory.",
        )
    return out.resolve()


_VALUE_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("place", "kernel", "target", "directory", "hash"), str), "types": list,
    "constants": dict, "options": dict, "args": dict
}  # fmt: skip
"""Expected type of each value; the record may come from an untrusted cache."""


def _read_rows(directory: Path, key: str) -> list[dict[str, Any]]:
    """The rows of a list, without values of unexpected types."""
    rows: list[dict[str, Any]] = []
    for document_row in (_read_document(directory) or {}).get(key, ()):
        if isinstance(document_row, dict):
            row: dict[str, Any] = {
                name: x for name, x in document_row.items() if isinstance(x, _VALUE_TYPES.get(name, object))
            }
            if "types" in row:
                row["types"] = [value for value in row["types"] if isinstance(value, str) and "=" in value]
            rows.append(row)
    return rows


def _read_document(directory: Path) -> dict[str, Any] | None:
    """The contents of a directory's manifest, empty if there is none; None if it cannot be read."""
    try:
        document = json.loads(read_content(directory / MANIFEST, MAX_RECORD_BYTES, follow_links=False))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    if isinstance(document, dict) and all(isinstance(document.get(key, []), list) for key in ("entries", "launches")):
        return document
    return None


def add_to_manifest(
    directory: Path, results: Iterable[CompileResult], launches: Iterable[Mapping[str, Any]] = ()
) -> None:
    """Add results and launches to the manifest of a directory; the file is replaced atomically.

    Raises:
        CacheError: the manifest would become too large to read again; it is unchanged.
    """
    with _WRITE_LOCK:
        if _read_document(directory) is None:
            return  # it became unreadable: another program writes it
        references: dict[int, dict[str, str]] = {}
        new_launches = [
            {**launch, "args": store_arguments(directory, launch["args"], references)}  # large tensors go to files
            if isinstance(launch.get("args"), Mapping)
            else dict(launch)
            for launch in launches
        ]
        launches_by_text = {json.dumps(launch): launch for launch in (*read_launches(directory), *new_launches)}
        entries = {_entry_identity(entry): entry for entry in read_manifest(directory)}
        for result in results:
            if result.is_usage_error:
                continue  # the request was refused before a compile
            entry = _describe_entry(result, directory)
            previous_entry = entries.get(_entry_identity(entry), {})
            if result.is_cached and "seconds" in previous_entry:
                entry["seconds"] = previous_entry["seconds"]  # the duration of the compile, not of the lookup
            entries[_entry_identity(entry)] = entry
        _write_manifest(directory, list(entries.values()), list(launches_by_text.values()), len(new_launches))


def _write_manifest(
    directory: Path, entries: list[dict[str, Any]], launches: list[dict[str, Any]], new_count: int
) -> None:
    text = _format_manifest(entries, launches)
    if len(text) > MAX_RECORD_BYTES:  # without the entries whose compiled kernels do not exist any more
        names = [entry.get("directory") for entry in entries]
        present = [x for x, name in zip(entries, names, strict=True) if name and (directory / str(name)).is_dir()]
        text = _format_manifest(present, launches)
    if len(text) > MAX_RECORD_BYTES:
        raise CacheError(
            f"{directory / MANIFEST} would have {len(text) >> 20} MiB with {new_count:,} new launches; at most "
            f"{MAX_RECORD_BYTES >> 20} MiB are read. It is unchanged.",
            "Use a new directory: -o DIR.",
        )
    with suppress(CacheError):  # the kernels are usable without the manifest
        write_text(directory / MANIFEST, text)


def _format_manifest(entries: list[dict[str, Any]], launches: list[dict[str, Any]]) -> str:
    document: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "entries": entries}
    if launches:
        document["launches"] = launches
    return json.dumps(document, indent=1) + "\n"


def _describe_entry(result: CompileResult, directory: Path) -> dict[str, Any]:
    entry = {
        "kernel": result.kernel, "place": result.kernel_path, "target": result.target.arch,
        "triton": result.triton, "config": result.config, "types": list(result.types),
        "constants": dict(result.constants), "options": dict(result.options),
        "seconds": round(result.seconds, 3),
        "directory": None if result.directory is None else os.path.relpath(result.directory, directory),
        "message": result.message
    }  # fmt: skip
    if (details := result.details) is not None:
        dropped = len(details) - MAX_DETAIL_CHARACTERS
        text = details if dropped <= 0 else f"… {dropped:,} characters are not kept …\n{details[dropped:]}"
        entry["details"] = text
    return entry


def _entry_identity(entry: Mapping[str, Any]) -> str:
    return json.dumps([entry.get(name) for name in _IDENTITY_KEYS], sort_keys=True)

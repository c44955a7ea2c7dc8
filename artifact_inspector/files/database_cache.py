"""Writes the entries of a cache in an SQLite database as directories.

Read are the cache of triton#11779 (`triton-cache-v1.sqlite3`: a table `entries` of cache key, file name and data) and
that of cuTile (`cache.db`: a table `cache` of key and cubin). cuTile's entries have no name, source or IR.

Source: github.com/julien-blanchon/triton, python/triton/runtime/sqlite_cache.py; github.com/nvidia/cutile-python,
src/cuda/tile/_cache.py.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from artifact_inspector.files.artifact import sanitize
from artifact_inspector.model.limits import FILE_MIB

MAGIC = b"SQLite format 3\0"
_SCHEMAS = {
    ("cache_key", "data", "filename"): "SELECT cache_key, filename, data, length(data) FROM entries",
    ("blob", "key"): "SELECT key, 'kernel.cubin', blob, length(blob) FROM cache",
}
"""Columns that a table must have → the query for its files."""


def write_entries(database: Path, into: Path, spend: Callable[[int], None]) -> Iterator[str]:
    """Write each file of each entry; yield what is wrong, as the end of a sentence each.

    The file is opened read-only; a journal beside it is ignored. Views, triggers and functions of it are not
    run: only tables of a schema that is listed here are read.

    Args:
        spend: called with the size of each file; raises where they are too many.
    """
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            query = _query(connection)
            if query is None:
                yield "the database is no kernel cache: Triton's has a table `entries`, cuTile's a table `cache`"
                return
            for key, name, content, size in connection.execute(query):
                yield from _write_file(into, key, name, content, size, spend)
    except sqlite3.Error as error:
        yield f"the database is damaged: {error}"


def _query(connection: sqlite3.Connection) -> str | None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for needed, query in _SCHEMAS.items():
        table = query.rpartition(" ")[2]
        if table in tables and {*needed} <= {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}:
            return query
    return None


def _write_file(
    into: Path, key: object, name: object, content: object, size: object, spend: Callable[[int], None]
) -> Iterator[str]:
    label = sanitize(f"{key}/{name}")[:200]
    if not (isinstance(key, str) and isinstance(name, str) and isinstance(content, bytes | str)):
        yield f"{label}: not a file"
        return
    if any(part in ("", ".", "..") or "/" in part or "\\" in part or "\0" in part for part in (key, name)):
        yield f"{label}: its name leads out of the cache"
        return
    data = content.encode(errors="replace") if isinstance(content, str) else content
    if len(data) > FILE_MIB.value << 20:
        yield f"{label}: {size} bytes; set {FILE_MIB.variable} to read it"
        return
    spend(len(data))
    directory = into / sanitize(key)[:128]
    directory.mkdir(exist_ok=True)
    (directory / sanitize(name)[:200]).write_bytes(data)

"""Persistent cache of facts about kernels: an SQLite index in the user's cache directory, safe to delete.

The key of a value is a digest of everything that the value depends on, so no value is ever out of date. Several
processes may read and write the index at once. A file that is damaged or of an older schema is rebuilt. A file that is
unreadable, not writable, or written by a newer version is ignored. Each prints one line of notice; none is an error.

Source: SQLite, "Write-Ahead Logging" and "Pragma statements".
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.files.writer import is_disabled, user_cache

INDEX_VARIABLE = "ARTIFACT_INSPECTOR_INDEX"
"""Environment variable: `off` disables the index."""
SCHEMA_VERSION = 1
"""Version of the table schema; a file with an older version is rebuilt."""
MAX_BYTES = 256 << 20
"""Maximum bytes of stored values; above it, the least recently used values are removed."""
BUSY_TIMEOUT = 2.0
"""Seconds to wait for another process that is writing."""
MAX_VALUE_BYTES = 1 << 28
"""Maximum bytes of one unpacked value; a larger value is not one of ours."""
EVICTION_TARGET = 0.8
DAY = 86400
_KEYS_PER_QUERY = 500
_CHECKSUM_BYTES = 8
"""Bytes of the checksum before a value."""
_TABLE = "CREATE TABLE facts (key BLOB PRIMARY KEY, used INTEGER NOT NULL, value BLOB NOT NULL)"
"""The table definition as SQLite stores it."""
_SQLITE_SUFFIXES = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's files next to the database."""


class IndexStats(NamedTuple):
    """Size of an index."""

    path: Path
    entries: int
    bytes: int
    """Bytes of the stored values."""


def default_path() -> Path | None:
    """The index file in the user's cache directory; None without a home directory."""
    root = user_cache()
    return None if root is None else root / "facts.sqlite3"


def index_opener(notice: Callable[[str], None]) -> Callable[[], Index] | None:
    """A function that opens the user's index, which reports problems to `notice`; None if disabled."""
    return None if is_disabled(INDEX_VARIABLE) else partial(Index, default_path(), notice)


class Index:
    """Values by key; after any error of the file it behaves like an empty index."""

    def __init__(self, path: Path | None, notice: Callable[[str], None], max_bytes: int | None = None) -> None:
        """Open the index at a path, creating it if missing; problems are reported to `notice`."""
        self._path, self._notice = path, notice
        self._max_bytes = MAX_BYTES if max_bytes is None else max_bytes
        self._connection: sqlite3.Connection | None = None
        if path is None:
            self._disable("there is no home directory")
        else:
            self._open(path)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- values ------------------------------------------------------------------------

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that have an intact value."""
        return {key: value for key, packed in self.get_packed(keys).items() if (value := unpack(packed)) is not None}

    def find(self, keys: Iterable[bytes]) -> frozenset[bytes]:
        """Those keys that have a value, intact or not."""
        found, requested = set[bytes](), list(keys)
        if self._connection is not None:
            with self._recover("read") as connection:
                for start in range(0, len(requested), _KEYS_PER_QUERY):
                    batch = requested[start : start + _KEYS_PER_QUERY]
                    query = f"SELECT key FROM facts WHERE key IN ({','.join('?' * len(batch))})"
                    found.update(key for (key,) in connection.execute(query, batch))
        return frozenset(found)

    def get_packed(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values as they are stored, for `unpack`, of those keys whose value has the right checksum."""
        values: dict[bytes, bytes] = {}
        requested, now, touched = list(keys), int(time.time()), []
        if self._connection is None:
            return values
        with self._recover("read") as connection:
            for start in range(0, len(requested), _KEYS_PER_QUERY):
                batch = requested[start : start + _KEYS_PER_QUERY]
                query = f"SELECT key, used, value FROM facts WHERE key IN ({','.join('?' * len(batch))})"
                for key, used, stored in connection.execute(query, batch):
                    value = read_checked(key, stored)
                    if value is not None:
                        values[key] = value
                    if abs(now - used) > DAY:
                        touched.append((now, key))
            if touched:
                with contextlib.suppress(sqlite3.OperationalError):  # reading works on a read-only file
                    connection.executemany("UPDATE facts SET used = ? WHERE key = ?", touched)
        return values

    def put(self, values: Mapping[bytes, bytes], *, are_packed: bool = False) -> None:
        """Store some values, or what `pack` made of them; the oldest are removed if there are too many."""
        now = int(time.time())
        rows = [(key, now, write_checked(key, value, is_packed=are_packed)) for key, value in values.items()]
        if not rows or self._connection is None:
            return
        with self._recover("written") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany("INSERT OR REPLACE INTO facts (key, used, value) VALUES (?, ?, ?)", rows)
                _evict_oldest(connection, self._max_bytes)
                connection.execute("COMMIT")
            except sqlite3.Error:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def stats(self) -> IndexStats | None:
        """Size of the index; None if it is ignored."""
        if self._connection is None:
            return None
        with self._recover("read") as connection:
            count, size = connection.execute("SELECT count(*), total(length(value)) FROM facts").fetchone()
            assert self._path is not None
            return IndexStats(self._path, count, int(size))
        return None

    def clear(self) -> None:
        """Remove all values and free the disk space."""
        if self._connection is None:
            return
        with self._recover("cleared") as connection:
            connection.execute("DELETE FROM facts")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- the file ----------------------------------------------------------------------

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(file.exists() and not file.is_file() for file in _database_files(path)):  # SQLite waits for a pipe
                self._disable("a path is not a regular file")
                return
            self._connect(path)
        except _DATABASE_ERRORS as error:
            if _is_corruption(error):
                self._rebuild(path, "it was damaged")
            else:
                self._disable(str(error))
        except OSError as error:
            self._disable(error.strerror or str(error))

    def _connect(self, path: Path) -> None:
        self._connection = connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)
        # one transaction for both: another process may create the table between two reads
        connection.execute("BEGIN")
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        schema = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        connection.execute("COMMIT")
        if layout > SCHEMA_VERSION:
            self._disable("a newer version wrote it")
            return
        # a view of that name might never end
        if (schema or layout) and (layout, schema) != (SCHEMA_VERSION, [(_TABLE,)]):
            self._rebuild(path, "it was damaged" if layout == SCHEMA_VERSION else "an older version wrote it")
            return
        if layout == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE.replace("TABLE", "TABLE IF NOT EXISTS", 1))
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = NORMAL")

    def _rebuild(self, path: Path, reason: str) -> None:
        self.close()
        try:
            for file in _database_files(path):
                file.unlink(missing_ok=True)
            self._connect(path)
        except (OSError, *_DATABASE_ERRORS) as error:
            self._disable(f"{reason}, and it could not be rebuilt ({error})")
        else:
            self._notice(f"Rebuilt the index of facts: {reason} ({path}).")

    def _disable(self, reason: str) -> None:
        self.close()
        self._notice(f"Ignoring the index of facts: {reason}{'' if self._path is None else f' ({self._path})'}.")

    @contextlib.contextmanager
    def _recover(self, operation: str) -> Iterator[sqlite3.Connection]:
        """The connection; an error of the file ends the operation and is reported."""
        assert self._connection is not None
        try:
            yield self._connection
        except _DATABASE_ERRORS as error:
            if _is_corruption(error) and self._path is not None:
                self._rebuild(self._path, "it was damaged")
            else:
                self._disable(f"it could not be {operation}: {error}")


def _database_files(path: Path) -> Iterator[Path]:
    return (path.with_name(path.name + end) for end in ("", *_SQLITE_SUFFIXES))


_DATABASE_ERRORS = (sqlite3.Error, UnicodeError, TypeError, OverflowError)
"""Exceptions of a damaged file: its text may be invalid, its numbers no numbers."""


def _is_corruption(error: Exception) -> bool:
    if not isinstance(error, sqlite3.Error):
        return True
    # Python 3.10 has no error code, only the message
    return any(message in str(error) for message in ("not a database", "malformed", "no such table", "no such column"))


def _evict_oldest(connection: sqlite3.Connection, max_bytes: int) -> None:
    # size according to the file's header: summing all values on every write would be slow
    names = ("page_count", "freelist_count", "page_size")
    pages, free, of_page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    size = (pages - free) * of_page
    if size <= max_bytes:
        return
    for key, length in connection.execute("SELECT key, length(value) FROM facts ORDER BY used, rowid").fetchall():
        if size <= EVICTION_TARGET * max_bytes:
            break
        connection.execute("DELETE FROM facts WHERE key = ?", (key,))
        size -= length


def _checksum(key: bytes, packed: bytes) -> bytes:
    return blake2b(packed, digest_size=_CHECKSUM_BYTES, key=key[:64]).digest()


def write_checked(key: bytes, value: bytes, *, is_packed: bool = False) -> bytes:
    """The value as it is stored: compressed, after a checksum."""
    packed = value if is_packed else pack(value)
    return _checksum(key, packed) + packed


def read_checked(key: bytes, stored: object) -> bytes | None:
    """The compressed value; None if its checksum is wrong: a disk may return other bytes than were written."""
    if not isinstance(stored, bytes) or _checksum(key, stored[_CHECKSUM_BYTES:]) != stored[:_CHECKSUM_BYTES]:
        return None
    return stored[_CHECKSUM_BYTES:]


def pack(value: bytes) -> bytes:
    """The value as `unpack` reads it."""
    return zlib.compress(value, 1)


def unpack(packed: bytes) -> bytes | None:
    """The value; None if it is damaged or too long."""
    unpacked = zlib.decompressobj()
    try:
        value = unpacked.decompress(packed, MAX_VALUE_BYTES)
    except zlib.error:
        return None
    return value if unpacked.eof else None

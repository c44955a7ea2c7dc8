"""Persistent cache of facts about kernels: an SQLite index in the user's cache directory, safe to delete.

The key of a value is a digest of everything that the value depends on, so no value is ever out of date.
Several processes may read and write the index at once. A file that is damaged or of an older schema is
rebuilt. A file that is unreadable, not writable, or written by a newer version is ignored. Each prints one
line of notice; none is an error.

Source: SQLite, "Write-Ahead Logging" and "Pragma statements".
"""

from __future__ import annotations

import contextlib
import sqlite3
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.files.kept import is_off, user_cache

SWITCH = "ARTIFACT_INSPECTOR_INDEX"
"""Environment variable: `off` disables the index."""
LAYOUT = 1
"""Version of the table schema; a file with an older version is rebuilt."""
MOST_BYTES = 256 << 20
"""Maximum bytes of stored values; above it, the least recently used values are removed."""
PATIENCE = 2.0
"""Seconds to wait for another process that is writing."""
MOST_UNPACKED = 1 << 28
"""Maximum bytes of one unpacked value; a larger value is not one of ours."""
KEPT_AFTER_ROOM = 0.8
DAY = 86400
_SEAL = 8
"""Bytes of the checksum in front of a value."""


_TABLE = "CREATE TABLE facts (key BLOB PRIMARY KEY, used INTEGER NOT NULL, value BLOB NOT NULL)"
"""The table definition as SQLite stores it."""
_BESIDE = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's files next to the database."""


class Stats(NamedTuple):
    """Size of an index."""

    place: Path
    entries: int
    bytes: int
    """Bytes of the stored values."""


def default_place() -> Path | None:
    """The index file in the user's cache directory; None without a home directory."""
    root = user_cache()
    return None if root is None else root / "facts.sqlite3"


def opener(notice: Callable[[str], None]) -> Callable[[], Index] | None:
    """A function that opens the user's index, which reports problems to `notice`; None if disabled."""
    return None if is_off(SWITCH) else lambda: Index(default_place(), notice)


class Index:
    """Values by key; after any error of the file it behaves like an empty index."""

    def __init__(self, place: Path | None, notice: Callable[[str], None]) -> None:
        """Open the index at a path, creating it if missing; problems are reported to `notice`."""
        self._place = place
        self._notice = notice
        self._connection: sqlite3.Connection | None = None
        if place is None:
            self._pass_over("there is no home directory")
        else:
            self._open(place)

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

    def read(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that have an intact value."""
        found: dict[bytes, bytes] = {}
        wanted, now, touched = list(keys), int(time.time()), []
        if self._connection is None:
            return found
        with self._mended("read") as connection:
            for start in range(0, len(wanted), 500):
                some = wanted[start : start + 500]
                query = f"SELECT key, used, value FROM facts WHERE key IN ({','.join('?' * len(some))})"
                for key, used, sealed in connection.execute(query, some):
                    value = _unsealed(key, sealed)
                    if value is not None:
                        found[key] = value
                    if abs(now - used) > DAY:
                        touched.append((now, key))
            if touched:
                with contextlib.suppress(sqlite3.OperationalError):  # reading works on a read-only file
                    connection.executemany("UPDATE facts SET used = ? WHERE key = ?", touched)
        return found

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Store some values; the oldest are removed if there are too many."""
        now = int(time.time())
        rows = [(key, now, _sealed(key, value)) for key, value in values.items()]
        if not rows or self._connection is None:
            return
        with self._mended("written") as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "INSERT OR REPLACE INTO facts (key, used, value) VALUES (?, ?, ?)", rows
                )
                _make_room(connection)
                connection.execute("COMMIT")
            except sqlite3.Error:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def stats(self) -> Stats | None:
        """Size of the index; None if it is ignored."""
        if self._connection is None:
            return None
        with self._mended("read") as connection:
            count, size = connection.execute("SELECT count(*), total(length(value)) FROM facts").fetchone()
            assert self._place is not None
            return Stats(self._place, count, int(size))
        return None

    def clear(self) -> None:
        """Remove all values and free the disk space."""
        if self._connection is None:
            return
        with self._mended("cleared") as connection:
            connection.execute("DELETE FROM facts")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    # -- the file ----------------------------------------------------------------------

    def _open(self, place: Path) -> None:
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not all(map(_is_regular, _files(place))):
                self._pass_over("a path is not a regular file")
                return
            self._connect(place)
        except _FAULTS as error:
            if _is_damage(error):
                self._rebuild(place, "it was damaged")
            else:
                self._pass_over(str(error))
        except OSError as error:
            self._pass_over(error.strerror or str(error))

    def _connect(self, place: Path) -> None:
        self._connection = connection = sqlite3.connect(place, timeout=PATIENCE, isolation_level=None)
        # one transaction for both: another process may create the table between two reads
        connection.execute("BEGIN")
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        made = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        connection.execute("COMMIT")
        if layout > LAYOUT:
            self._pass_over("a newer version wrote it")
            return
        # a view of that name might never end
        if (made or layout) and (layout, made) != (LAYOUT, [(_TABLE,)]):
            self._rebuild(place, "it was damaged" if layout == LAYOUT else "an older version wrote it")
            return
        if layout == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE.replace("TABLE", "TABLE IF NOT EXISTS", 1))
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")
        connection.execute("PRAGMA synchronous = NORMAL")

    def _rebuild(self, place: Path, why: str) -> None:
        self.close()
        try:
            for file in _files(place):
                file.unlink(missing_ok=True)
            self._connect(place)
        except (OSError, *_FAULTS) as error:
            self._pass_over(f"{why}, and it could not be rebuilt ({error})")
        else:
            self._notice(f"Rebuilt the index of facts: {why} ({place}).")

    def _pass_over(self, why: str) -> None:
        self.close()
        place = "" if self._place is None else f" ({self._place})"
        self._notice(f"Ignoring the index of facts: {why}{place}.")

    @contextlib.contextmanager
    def _mended(self, done: str) -> Iterator[sqlite3.Connection]:
        """The connection; an error of the file ends the operation and is reported."""
        assert self._connection is not None
        try:
            yield self._connection
        except _FAULTS as error:
            if _is_damage(error) and self._place is not None:
                self._rebuild(self._place, "it was damaged")
            else:
                self._pass_over(f"it could not be {done}: {error}")


def _files(place: Path) -> Iterator[Path]:
    return (place.with_name(place.name + end) for end in ("", *_BESIDE))


def _is_regular(file: Path) -> bool:
    """Whether it is a file or does not exist; SQLite would wait forever on a pipe."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except FileNotFoundError:
        return True


_FAULTS = (sqlite3.Error, UnicodeError, TypeError, OverflowError)
"""Exceptions of a damaged file: its text may be invalid, its numbers no numbers."""


def _is_damage(error: Exception) -> bool:
    if not isinstance(error, sqlite3.Error):
        return True
    # Python 3.10 has no error code, only the message
    return any(
        word in str(error) for word in ("not a database", "malformed", "no such table", "no such column")
    )


def _make_room(connection: sqlite3.Connection) -> None:
    # size according to the file's header: summing all values on every write would be slow
    pages, free, of_page = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    size = (pages - free) * of_page
    if size <= MOST_BYTES:
        return
    oldest = connection.execute("SELECT key, length(value) FROM facts ORDER BY used, rowid").fetchall()
    for key, length in oldest:
        if size <= KEPT_AFTER_ROOM * MOST_BYTES:
            break
        connection.execute("DELETE FROM facts WHERE key = ?", (key,))
        size -= length


def _sealed(key: bytes, value: bytes) -> bytes:
    packed = zlib.compress(value, 1)
    return blake2b(packed, digest_size=_SEAL, key=key[:64]).digest() + packed


def _unsealed(key: bytes, sealed: object) -> bytes | None:
    """The value; None if its checksum is wrong: a disk may return other bytes than were written."""
    if not isinstance(sealed, bytes):
        return None
    seal, packed = sealed[:_SEAL], sealed[_SEAL:]
    if blake2b(packed, digest_size=_SEAL, key=key[:64]).digest() != seal:
        return None
    unpacked = zlib.decompressobj()
    try:
        value = unpacked.decompress(packed, MOST_UNPACKED)
    except zlib.error:
        return None
    return value if unpacked.eof else None

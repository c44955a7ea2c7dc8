"""What was found of kernels before: an index in the user's cache directory, safe to lose at any time.

One SQLite file holds values by key; a key is a digest of all that a value depends on, so nothing in it is
ever out of date. Several processes may read and write it at once. A file that is damaged or of an older
layout is rebuilt; one that cannot be read or written, or that a newer version made, is passed over: each with
one line of notice, and neither is ever an error.

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
"""Environment variable: `off` does without the index."""
LAYOUT = 1
"""Of the tables; a file of an older one is rebuilt."""
MOST_BYTES = 256 << 20
"""Of what is kept; beyond, those that were not asked for longest go."""
PATIENCE = 2.0
"""Seconds to wait for another process that writes."""
MOST_UNPACKED = 1 << 28
"""Bytes that one value may hold: more is no value of ours."""
KEPT_AFTER_ROOM = 0.8
DAY = 86400
_SEAL = 8
"""Bytes in front of a value that tell whether it is whole."""


_TABLE = "CREATE TABLE facts (key BLOB PRIMARY KEY, used INTEGER NOT NULL, value BLOB NOT NULL)"
"""As SQLite keeps it."""
_BESIDE = ("-wal", "-shm", "-journal")
"""What the names of SQLite's files beside its own end in."""


class Stats(NamedTuple):
    """What an index holds."""

    place: Path
    entries: int
    bytes: int
    """Of the values, as they are stored."""


def default_place() -> Path | None:
    """The index's file in the user's cache directory; None without a home."""
    root = user_cache()
    return None if root is None else root / "facts.sqlite3"


def opener(notice: Callable[[str], None]) -> Callable[[], Index] | None:
    """Opens the user's index, which tells `notice` what is amiss; None where it is switched off."""
    return None if is_off(SWITCH) else lambda: Index(default_place(), notice)


class Index:
    """Values by key; every fault of the file makes it one that holds nothing."""

    def __init__(self, place: Path | None, notice: Callable[[str], None]) -> None:
        """Open the index at a place, making it where it is not there; `notice` is told what is amiss."""
        self._place = place
        self._notice = notice
        self._connection: sqlite3.Connection | None = None
        if place is None:
            self._pass_over("there is no home directory")
        else:
            self._open(place)

    def close(self) -> None:
        """Let go of the file."""
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
        """The values of those keys that have a whole one."""
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
                with contextlib.suppress(
                    sqlite3.OperationalError
                ):  # what cannot be written is read all the same
                    connection.executemany("UPDATE facts SET used = ? WHERE key = ?", touched)
        return found

    def write(self, values: Mapping[bytes, bytes]) -> None:
        """Keep some values; the oldest go where they are too many."""
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
        """What it holds; None for one that is passed over."""
        if self._connection is None:
            return None
        with self._mended("read") as connection:
            count, size = connection.execute("SELECT count(*), total(length(value)) FROM facts").fetchone()
            assert self._place is not None
            return Stats(self._place, count, int(size))
        return None

    def clear(self) -> None:
        """Forget everything, and give the room back."""
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
                self._pass_over("there is what is no regular file")
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
        # both of one moment: another process may make the table between two reads
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
            self._pass_over(f"{why}, and could not be made anew ({error})")
        else:
            self._notice(f"The index of facts is made anew: {why} ({place}).")

    def _pass_over(self, why: str) -> None:
        self.close()
        place = "" if self._place is None else f" ({self._place})"
        self._notice(f"The index of facts is passed over: {why}{place}.")

    @contextlib.contextmanager
    def _mended(self, done: str) -> Iterator[sqlite3.Connection]:
        """The connection; a fault of the file ends what is done with it, and is told."""
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
    """Whether it is a file, or nothing as yet; SQLite would wait for ever at a pipe."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except FileNotFoundError:
        return True


_FAULTS = (sqlite3.Error, UnicodeError, TypeError, OverflowError)
"""What a damaged file may end in: its own words may be no text, its numbers no numbers."""


def _is_damage(error: Exception) -> bool:
    if not isinstance(error, sqlite3.Error):
        return True
    # Python 3.10 has no code of the error, but its words
    return any(
        word in str(error) for word in ("not a database", "malformed", "no such table", "no such column")
    )


def _make_room(connection: sqlite3.Connection) -> None:
    # what the file says of itself: a sum over all values would be taken again for every few that are written
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
    """The value, None for one that is not whole: a disk may give back other bytes than it was given."""
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

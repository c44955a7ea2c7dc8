"""The index keeps what it is given, loses nothing but itself, and stands in nobody's way."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from artifact_inspector.files import index as module
from artifact_inspector.files.index import SCHEMA_VERSION, Index, default_path

SOME = {bytes([n]) * 32: f"value {n}".encode() * n for n in range(1, 60)}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home" / "artifact-inspector" / "facts.sqlite3"


def kept(place: Path, values: dict[bytes, bytes] = SOME) -> list[str]:
    """What is said while values are kept."""
    said: list[str] = []
    with Index(place, said.append) as index:
        index.put(values)
    return said


def found(place: Path, keys: object = None) -> tuple[dict[bytes, bytes], list[str]]:
    said: list[str] = []
    with Index(place, said.append) as index:
        return index.get(SOME if keys is None else keys), said  # type: ignore[arg-type]


def test_what_was_kept_is_found_by_the_next(place: Path) -> None:
    assert kept(place) == []
    assert found(place) == (SOME, [])


def test_a_key_that_was_not_kept_is_not_found(place: Path) -> None:
    kept(place)
    assert found(place, [b"x" * 32]) == ({}, [])


def test_a_value_is_replaced_by_a_later_one(place: Path) -> None:
    kept(place)
    key = next(iter(SOME))
    kept(place, {key: b"other"})
    assert found(place, [key])[0] == {key: b"other"}


def test_more_keys_than_one_question_may_hold(place: Path) -> None:
    many = {n.to_bytes(32, "big"): str(n).encode() for n in range(3000)}
    kept(place, many)
    assert found(place, list(many))[0] == many


def test_it_lies_in_the_users_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "artifact-inspector" / "facts.sqlite3"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert default_path() == tmp_path / "me" / ".cache" / "artifact-inspector" / "facts.sqlite3"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # is to be ignored, by the XDG base directory specification
    assert default_path() == tmp_path / "me" / ".cache" / "artifact-inspector" / "facts.sqlite3"


def test_nobody_else_may_read_it(place: Path) -> None:
    kept(place)
    assert place.parent.stat().st_mode & 0o077 == 0


# -- damage ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"no database at all\n" * 99, b"\0" * 9000, b"SQLite format 3\0" + bytes(range(256)) * 40]
)
def test_a_file_that_is_none_is_made_anew_with_one_line(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True)
    place.write_bytes(content)
    (said,) = kept(place)
    assert said.startswith("Rebuilt the index of facts: it was damaged")
    assert "\n" not in said
    assert found(place) == (SOME, [])


def test_a_file_cut_off_is_made_anew(place: Path) -> None:
    kept(place)
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    values, said = found(place)
    assert values.items() <= SOME.items()
    assert len(said) <= 1
    kept(place)
    assert found(place)[0] == SOME


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_the_disk_changed_never_come_back_as_values(place: Path, seed: int) -> None:
    kept(place)
    chance = random.Random(seed)
    content = bytearray(place.read_bytes())
    for _ in range(chance.choice((1, 10, 300))):
        content[chance.randrange(len(content))] = chance.randrange(256)
    place.write_bytes(content)
    for end in ("-wal", "-shm"):
        place.with_name(place.name + end).unlink(missing_ok=True)
    values, said = found(place)
    assert values.items() <= SOME.items()
    assert len(said) <= 1
    kept(place)


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW facts AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r)"
        " SELECT i AS key, i AS used, i AS value FROM r",
        "CREATE TABLE facts (key)",
    ],
    ids=["a view without end", "other columns"],
)
def test_what_is_not_our_table_is_made_anew(place: Path, made: str) -> None:
    kept(place)
    other = sqlite3.connect(place)
    other.executescript(f"DROP TABLE facts; {made};")
    other.close()
    assert found(place) == ({}, [f"Rebuilt the index of facts: it was damaged ({place})."])
    kept(place)
    assert found(place) == (SOME, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="There are no pipes.")
@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_pipe_beside_it_is_not_waited_for(place: Path, end: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(place.with_name(place.name + end))
    told = f"Ignoring the index of facts: a path is not a regular file ({place})."
    assert found(place) == ({}, [told])


def test_an_older_layout_is_made_anew(place: Path) -> None:
    place.parent.mkdir(parents=True)
    with sqlite3.connect(place) as old:
        old.execute("CREATE TABLE facts (key TEXT, other TEXT)")
        old.execute(f"PRAGMA user_version = {SCHEMA_VERSION - 1}")
    old.close()
    (said,) = kept(place)
    assert "an older version wrote it" in said
    assert found(place)[0] == SOME


def test_a_newer_layout_is_left_as_it_is(place: Path) -> None:
    kept(place)
    with sqlite3.connect(place) as new:
        new.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    new.close()
    before = place.read_bytes()
    values, (said,) = found(place)
    assert values == {}
    assert "a newer version wrote it" in said
    kept(place)
    assert place.read_bytes() == before


# -- no room, no right -----------------------------------------------------------------


def test_no_home_is_passed_over() -> None:
    said: list[str] = []
    with Index(None, said.append) as index:
        index.put(SOME)
        assert index.get(SOME) == {}
        assert index.stats() is None
        index.clear()
    assert said == ["Ignoring the index of facts: there is no home directory."]


def test_a_directory_that_cannot_be_made_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    values, (said,) = found(tmp_path / "file" / "artifact-inspector" / "facts.sqlite3")
    assert values == {}
    assert said.startswith("Ignoring the index of facts: ")


def test_a_directory_in_the_files_place_is_passed_over(place: Path) -> None:
    place.mkdir(parents=True)
    values, (said,) = found(place)
    assert values == {}
    assert said.startswith("Ignoring the index of facts: ")


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_home_that_may_only_be_read_is_passed_over(place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.parent.chmod(0o500)
    assert len(kept(place)) == 1
    assert found(place)[0] == {}


def test_a_full_disk_costs_the_values_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with Index(place, said.append) as index:
        index._connection.execute("PRAGMA max_page_count = 12")  # type: ignore[union-attr]
        index.put({bytes([n]) * 32: random.Random(n).randbytes(9000) for n in range(99)})
        index.put(SOME)
        assert index.get(SOME) == {}
    (sentence,) = said
    assert "could not be written" in sentence
    assert found(place) == ({}, [])


def test_a_process_that_never_ends_writing_is_not_waited_for(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT", 0.05)
    kept(place)
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    (said,) = kept(place, {b"y" * 32: b"1"})
    assert "locked" in said
    assert found(place)[0] == SOME  # a reader need not wait
    other.execute("ROLLBACK")
    other.close()
    assert kept(place, {b"y" * 32: b"1"}) == []


# -- size ------------------------------------------------------------------------------


@pytest.mark.long
def test_the_oldest_go_where_there_are_too_many(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100_000)
    clock = iter(range(0, 10**9, 10))
    monkeypatch.setattr(module.time, "time", lambda: next(clock))
    for n in range(100):
        kept(place, {n.to_bytes(32, "big"): random.Random(n).randbytes(1000)})
    said: list[str] = []
    with Index(place, said.append) as index:
        stats = index.stats()
        left = sorted(int.from_bytes(key, "big") for key in index.get(n.to_bytes(32, "big") for n in range(100)))
    assert stats is not None
    assert stats.bytes <= 100_000
    assert left == list(range(100 - len(left), 100))
    assert len(left) >= 30
    assert said == []


def test_what_is_asked_for_counts_as_young(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 500_000)
    now = [0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    first = {b"a" * 32: random.Random(1).randbytes(150_000), b"b" * 32: random.Random(2).randbytes(150_000)}
    kept(place, first)
    now[0] += 10 * module.DAY
    assert found(place, [b"a" * 32])[0]
    now[0] += 1
    kept(place, {b"c" * 32: random.Random(3).randbytes(230_000)})
    assert found(place, [b"a" * 32, b"b" * 32])[0].keys() == {b"a" * 32}


@pytest.mark.parametrize("most", [256 << 20, 1 << 20])
def test_what_a_few_values_take_to_be_kept_does_not_grow_with_what_is_there(
    place: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", most)
    chance, steps, taken = random.Random(1), 0, []

    def step() -> None:
        nonlocal steps
        steps += 1

    with Index(place, lambda said: None) as index:
        assert index._connection is not None
        index._connection.set_progress_handler(step, 10)
        for _ in range(2000):
            before = steps
            index.put({chance.randbytes(32): chance.randbytes(900)})
            taken.append(steps - before)
    assert sum(taken[1600:]) < 4 * sum(taken[:400])


def test_clearing_leaves_nothing_and_gives_the_room_back(place: Path) -> None:
    kept(place, {bytes([n]) * 32: random.Random(n).randbytes(9000) for n in range(99)})
    said: list[str] = []
    with Index(place, said.append) as index:
        index.clear()
        stats = index.stats()
    assert stats is not None
    assert (stats.entries, stats.bytes) == (0, 0)
    assert place.stat().st_size < 50_000
    assert said == []


# -- several at once -------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from artifact_inspector.files.index import Index
own = int(sys.argv[2])
for turn in range(15):
    with Index(Path(sys.argv[1]), lambda said: print(said)) as index:
        index.put({bytes([own, turn]) * 16: f"{own} {turn}".encode()})
        got = index.get([bytes([own, n]) * 16 for n in range(turn + 1)])
        assert got == {bytes([own, n]) * 16: f"{own} {n}".encode() for n in range(turn + 1)}, got
"""


def test_several_processes_write_and_read_at_once(place: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(place), str(n)], stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    said = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert said == [""] * 4
    keys = [bytes([own, turn]) * 16 for own in range(4) for turn in range(15)]
    assert len(found(place, keys)[0]) == 60


def test_several_threads_make_it_at_once(place: Path) -> None:
    said: list[str] = []

    def write(n: int) -> None:
        with Index(place, said.append) as index:
            index.put({bytes([n]) * 32: b"x"})

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == []
    assert len(found(place, [bytes([n]) * 32 for n in range(8)])[0]) == 8


def test_its_module_imports_nothing_that_could_run_what_it_holds() -> None:
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert "pickle" not in text
    assert "marshal" not in text

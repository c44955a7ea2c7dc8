"""Are the tests any good: small faults put in, one at a time, and what notices.

    python -m tests.mutation.reach --out reach.json --processes 8
    python -m tests.mutation.mutate --reach reach.*.json --count 200 --seed 1 --out mutants.jsonl --processes 8

A process that has collected the tests goes in two for each mutant; the other half gives the functions that live in it
their fault, and runs the tests that reach its function, by the record: those of its module first, then the cheapest.
What runs at import has its fault in a process of its own. A run that is stopped goes on where it was: what `--out`
lists is not run again. Each row says what noticed the fault, or `survived`, `slow` for a test that takes ten times as
long as it did, or `same` where no code is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mutation.faults import (
    ROOMS,
    ROOT,
    Faulty,
    Functions,
    Mutant,
    code_of,
    functions,
    lines_of,
    mutants,
    names_of,
    put_in,
)
from tests.mutation.reach import OPTIONS, Reach, caches, import_rooms, piece_of, read, side_by_side

BYTES = 8 << 30
"""Of memory, for one mutant."""
DIGESTS = "tests/golden/test_facts.py"
STATEMENTS = dict.fromkeys(("sass", "amdgcn"), "tests/golden/test_instructions.py")
"""Run before others, as they run every statement."""
VALUES = "tests/unit/test_frozen.py"
"""Looks at classes, and runs none of their lines."""
WALL = 400
"""Seconds for one mutant, for those that wait for something that never comes; it is not judged then."""


VIEWS = ("tests/unit/test_view_claims.py", "tests/golden/test_views.py", "tests/golden/test_reports.py")
"""Look at what all reports and pictures claim."""
GOLDENS = ("tests/golden/test_facts.py", "tests/golden/test_scenes.py", "tests/golden/test_lexers.py")
"""Look at what is read from files."""
PROCESSES = ("subprocess", "sys.executable", "compile_kernels")
"""Words of files whose tests start processes: these import the package without its fault, and take long."""
PARAMETERS = 3
"""Of one test that has no record, in files that do not import the module."""
APART = 24
"""Files of tests for a fault that needs a process of its own."""
WAITS = 3
"""Times as long as the tests of one mutant may take on the clock."""
SLOW = 12.0
"""Seconds of processor time of a test that has no record."""


@cache
def text_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def related(mutant: Mutant, known: Iterable[str], reach: Reach) -> list[str]:
    """Tests without a record, the likeliest first: by the name of the module, what imports it, what names the function."""
    module = mutant.file.removesuffix(".py").replace("/", ".")
    room, stem = Path(mutant.file).parts[1], Path(mutant.file).stem.strip("_")
    names = [name for name in names_of(mutant) if len(name.strip("_")) > 3]

    @cache
    def score(file: str) -> int:
        text = text_of(file)
        return not any(word in text for word in PROCESSES) and (
            100 * (Path(file).stem in (f"test_{stem}", f"test_{room}_{stem}"))
            + 60 * (f"{module} import" in text or f"import {stem}\n" in text)
            + 30 * any(name in text for name in names)
            + 15 * (f"{module.rpartition('.')[0]}." in text)
            + 10 * (file in VIEWS and room in ("report", "pictures"))
            + 8 * (file in GOLDENS and room in ("formats", "report", "analysis"))
            + 5 * (f"artifact_inspector.{room}" in text)
        )

    kept: dict[str, int] = {}
    chosen = []
    for test in known:
        file, name = test.partition("::")[0], test.partition("[")[0]
        kept[name] = kept.get(name, 0) + 1
        points = score(file)
        if test not in reach.seconds and points and (points >= 60 or kept[name] <= PARAMETERS):
            chosen.append((-points, len(text_of(file)), file, test))
    return [test for *_, test in sorted(chosen, key=lambda row: row[:3])]


class Plan(NamedTuple):
    """The tests that can notice a fault, in the order in which they run."""

    tests: list[str]
    seconds: float


def plan(reach: Reach, mutant: Mutant, known: Iterable[str], *, whole_file: bool, most: float) -> Plan:
    """Piece by piece: the module's own tests, then the cheapest, as far as `most` seconds go."""
    tests = reach.tests(mutant.file, None if whole_file else lines_of(mutant))
    tests += [test for test in known if whole_file and test.startswith(VALUES) and test in reach.seconds]
    known = dict.fromkeys(known)
    pieces: dict[tuple[str, bool], list[str]] = {}
    for test in dict.fromkeys(tests):
        if test in known:  # the facts of a kernel are a piece of their own: they tell most for their time
            pieces.setdefault((piece_of(test), test.startswith(DIGESTS)), []).append(test)
    stem, room = Path(mutant.file).stem, Path(mutant.file).parts[-2]
    own = (mutant.file, f"tests/unit/test_{stem}.py", f"tests/unit/test_{room}_{stem}.py", STATEMENTS.get(room))

    def cost(piece: tuple[str, bool]) -> float:
        return sum(reach.seconds[test] for test in pieces[piece])

    chosen: list[str] = []
    took = 0.0
    for piece in sorted(pieces, key=lambda piece: (piece[0] not in own, cost(piece))):
        if took > most:
            break
        chosen += pieces[piece]
        took += cost(piece)
    without_record = [test for test in known if test not in reach.seconds and test not in reach.left_out]
    return Plan(chosen + related(mutant, without_record, reach), took)


def run(items: Sequence[pytest.Item], reach: Reach, say: Any, most: float = 1e9) -> None:
    """Run tests until one fails, for so many seconds of processor time; say which, and end this process."""
    config = items[0].config
    signal.signal(signal.SIGVTALRM, too_slow)
    failed: list[str] = []

    class Watch:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    config.pluginmanager.register(Watch())
    began, start = time.process_time(), time.monotonic()
    for number, item in enumerate(items):
        if time.process_time() - began > most or time.monotonic() - start > WAITS * most:
            break
        took = reach.seconds.get(item.nodeid)
        signal.setitimer(signal.ITIMER_VIRTUAL, SLOW if took is None else 5 + 10 * took)
        following = items[number + 1] if number + 1 < len(items) else None
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            break
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    say(failed[0] if failed else "survived")


def too_slow(*_: object) -> None:
    """A test that takes far longer than without the fault has noticed it; a second signal ends the process."""
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, 5)
    raise TimeoutError


class Driver:
    """A plugin of pytest that runs mutants instead of tests."""

    def __init__(self, chosen: Sequence[Mutant], reach: Reach, asked: argparse.Namespace) -> None:
        self.chosen, self.reach, self.asked = chosen, reach, asked
        self.out: Path = asked.out.absolute()
        self.told = os.fdopen(os.dup(1), "w")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        import_rooms()
        living, kept = functions(), caches()
        rows = self.out.read_text(encoding="utf-8").splitlines() if self.out.exists() else []
        known = {(row["file"], row["place"]) for row in map(json.loads, rows)}
        chosen = [mutant for mutant in self.chosen if (mutant.file, mutant.place) not in known]

        def work(_: int, taken: Iterator[int]) -> None:
            for turn in taken:
                mutant = chosen[turn]
                end = self.end_of(mutant, items, living, kept)
                self.told.write(f"{turn + 1}/{len(chosen)} {end} {mutant.file}:{mutant.line} {mutant.what}\n")
                self.told.flush()

        side_by_side(self.asked.processes, min(len(chosen), self.asked.most), work, session, self.asked.wall)
        return True

    def end_of(self, mutant: Mutant, items: dict[str, Any], living: Functions, kept: Sequence[Any]) -> str:
        began = time.monotonic()
        chosen = plan(self.reach, mutant, items, whole_file=False, most=self.asked.seconds)
        end = self.forked(mutant, [items[test] for test in chosen.tests], living, kept)
        if end == "import":
            chosen = plan(self.reach, mutant, items, whole_file=True, most=self.asked.seconds)
            files = [*dict.fromkeys(test.partition("::")[0] for test in chosen.tests)][:APART]
            tests = [test for test in chosen.tests if test.partition("::")[0] in files]
            end = self.apart(mutant, Plan(tests, min(chosen.seconds, self.asked.seconds)))
        if end in items and self.forked(None, [items[end]], living, kept) == end:  # it fails without a fault, too
            return self.end_of(mutant, {test: item for test, item in items.items() if test != end}, living, kept)
        took = {"tests": len(chosen.tests), "planned": round(chosen.seconds, 1)}
        row = {**mutant._asdict(), "end": end, **took, "wall": round(time.monotonic() - began, 1)}
        with self.out.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        return end

    def forked(
        self, mutant: Mutant | None, items: Sequence[pytest.Item], living: Functions, kept: Sequence[Any]
    ) -> str:
        reader, writer = os.pipe()
        place = tempfile.mkdtemp()
        child = os.fork()
        if child == 0:

            def say(end: str) -> None:
                os.write(writer, end.encode())
                os._exit(0)

            try:
                resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
                went = mutant is None or put_in(mutant, living)
                if went is None:
                    say("same")
                if not went:
                    say("import")
                if not items:
                    say("survived")
                for one in kept:
                    one.cache_clear()
                items[0].config._tmp_path_factory._basetemp = Path(place)  # type: ignore[attr-defined]
                run(items, self.reach, say, self.asked.seconds)
            except BaseException as escaped:  # noqa: BLE001 - whatever it is, the fault was noticed
                say(f"escaped {type(escaped).__name__}")
        os.close(writer)
        end = ended(child, reader)
        shutil.rmtree(place, ignore_errors=True)
        return end

    def apart(self, mutant: Mutant, chosen: Plan) -> str:
        """The same in a process that imports the module with its fault."""
        asked = json.dumps([list(mutant), chosen.tests, chosen.seconds])
        limit = int(60 + 10 * chosen.seconds)
        told = subprocess.run(
            [sys.executable, "-m", "tests.mutation.mutate", "--one"], input=asked, capture_output=True, text=True,
            cwd=ROOT, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
        )  # fmt: skip
        return (
            "slow"
            if told.returncode == -signal.SIGXCPU
            else told.stdout.strip().rpartition("\n")[2] or f"escaped {told.returncode}"
        )


def ended(child: int, reader: int) -> str:
    """What a process says before it ends."""
    stop = time.monotonic() + WALL
    while (status := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > stop:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    with os.fdopen(reader) as told:
        is_slow = os.WIFSIGNALED(status[1]) and os.WTERMSIG(status[1]) == signal.SIGVTALRM
        return told.read() or ("slow" if is_slow else "not judged")


class One:
    """A plugin of pytest that runs the tests of one mutant, until one fails."""

    def __init__(self, tests: Sequence[str], seconds: float) -> None:
        self.tests, self.seconds = tests, seconds
        self.out = os.dup(1)

    def say(self, end: str) -> None:
        os.write(self.out, f"\n{end}\n".encode())
        os._exit(0)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        missing = [test for test in self.tests if test not in items]
        if missing:
            self.say("escaped at import" if session.testsfailed else f"{missing[0]} is gone")
        run([items[test] for test in self.tests], Reach({}, {}), self.say, self.seconds)
        return True


def run_one(asked: str) -> None:
    fields, tests, seconds = json.loads(asked)
    mutant = Mutant(*fields)
    one = One(tests, max(25, seconds))
    if not tests:
        one.say("survived")
    try:
        sys.meta_path.insert(0, Faulty(mutant.file.removesuffix(".py").replace("/", "."), code_of(mutant)))
        pytest.main([*OPTIONS, *sorted({test.partition("::")[0] for test in tests})], plugins=[one])
    except BaseException as escaped:  # noqa: BLE001 - whatever it is, the fault was noticed
        one.say(f"escaped {type(escaped).__name__}")
    one.say("escaped at import")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--count", type=int, default=200)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    options.add_argument("--reach", type=Path, nargs="*", default=[Path("reach.json")])
    options.add_argument("--tests", nargs="*", help="Files of tests, also without a record; those of the record.")
    options.add_argument("--most", type=int, default=sys.maxsize, help="Stop after so many that were not run before.")
    options.add_argument("--seconds", type=float, default=1e9, help="Of processor time, for the tests of one mutant.")
    options.add_argument("--rooms", nargs="+", default=ROOMS, help="Packages whose mutants are drawn.")
    options.add_argument("--processes", type=int, default=1, help="Mutants that are judged side by side.")
    options.add_argument("--wall", type=float, default=1e9, help="Seconds after which the run is ended.")
    options.add_argument(
        "--judge", nargs="+", default=ROOMS, help="Of what is drawn, the packages that are judged now."
    )
    options.add_argument("--only", help="A part of the name of the files whose mutants are drawn.")
    options.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.one:
        run_one(sys.stdin.read())
    reach = read(*asked.reach)
    every = [mutant for mutant in mutants(asked.rooms) if asked.only is None or asked.only in mutant.file]
    chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    chosen = [mutant for mutant in chosen if Path(mutant.file).parts[1] in asked.judge]
    driver = Driver(chosen, reach, asked)
    os.chdir(ROOT)
    files = asked.tests or sorted({test.partition("::")[0] for test in reach.seconds})
    pytest.main([*OPTIONS, *files], plugins=[driver])


if __name__ == "__main__":
    main()

"""Are the tests of `analysis/` and `comparison/` any good: small faults put in, one at a time, and what notices.

    python -m tests.mutation.reach --out reach.json
    python -m tests.mutation.mutate --reach reach.json --count 200 --seed 1 --out mutants.jsonl

A process that has collected the tests goes in two for each mutant; the other half gives the functions that live in it
their fault, and runs the tests that reach its line, by the record: those of its module first, then the cheapest.
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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mutation.faults import ROOT, Faulty, Functions, Mutant, code_of, functions, lines_of, mutants, put_in
from tests.mutation.reach import OPTIONS, Reach, caches, piece_of, read

BYTES = 6 << 30
"""Of memory, for one mutant."""
DIGESTS = "tests/golden/test_facts.py"
VALUES = "tests/unit/test_frozen.py"
"""Looks at classes, and runs none of their lines."""
WALL = 900
"""Seconds for one mutant, for those that wait for something that never comes."""


class Plan(NamedTuple):
    """The tests that can notice a fault, in the order in which they run."""

    tests: list[str]
    seconds: float


def plan(reach: Reach, mutant: Mutant, known: Iterable[str], *, whole_file: bool, most: float) -> Plan:
    """Piece by piece: the module's own tests, then the cheapest, as far as `most` seconds go."""
    tests = reach.tests(mutant.file, None if whole_file else lines_of(mutant))
    tests += [test for test in known if whole_file and test.startswith(VALUES) and test in reach.seconds]
    known = set(known)
    pieces: dict[tuple[str, bool], list[str]] = {}
    for test in dict.fromkeys(tests):
        if test in known:  # the facts of a kernel are a piece of their own: they tell most for their time
            pieces.setdefault((piece_of(test), test.startswith(DIGESTS)), []).append(test)
    stem, room = Path(mutant.file).stem, Path(mutant.file).parts[-2]
    own = (mutant.file, f"tests/unit/test_{stem}.py", f"tests/unit/test_{room}_{stem}.py")

    def cost(piece: tuple[str, bool]) -> float:
        return sum(reach.seconds[test] for test in pieces[piece])

    chosen: list[str] = []
    took = 0.0
    for piece in sorted(pieces, key=lambda piece: (piece[0] not in own, cost(piece))):
        if took > most:
            break
        chosen += pieces[piece]
        took += cost(piece)
    return Plan(chosen, took)


def run(items: Sequence[pytest.Item], reach: Reach, say: Any) -> None:
    """Run tests until one fails; say which, and end this process."""
    config = items[0].config
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    failed: list[str] = []

    class Watch:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    config.pluginmanager.register(Watch())
    for number, item in enumerate(items):
        signal.setitimer(signal.ITIMER_VIRTUAL, 5 + 10 * reach.seconds.get(item.nodeid, 1))
        following = items[number + 1] if number + 1 < len(items) else None
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            break
    say(failed[0] if failed else "survived")


class Driver:
    """A plugin of pytest that runs mutants instead of tests."""

    def __init__(self, chosen: Sequence[Mutant], reach: Reach, asked: argparse.Namespace) -> None:
        self.chosen, self.reach, self.asked = chosen, reach, asked
        self.out: Path = asked.out.absolute()
        self.told = os.fdopen(os.dup(1), "w")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        living, kept = functions(), caches()
        rows = self.out.read_text(encoding="utf-8").splitlines() if self.out.exists() else []
        known = {(row["file"], row["place"]): row["end"] for row in map(json.loads, rows)}
        left = self.asked.most or len(self.chosen)
        for number, mutant in enumerate(self.chosen, 1):
            end = known.get((mutant.file, mutant.place))
            if end is None and left <= 0:
                break
            if end is None:
                left -= 1
                end = self.end_of(mutant, items, living, kept)
            print(f"{number}/{len(self.chosen)} {end} {mutant.file}:{mutant.line} {mutant.what}", file=self.told)
            self.told.flush()
        return True

    def end_of(self, mutant: Mutant, items: dict[str, Any], living: Functions, kept: Sequence[Any]) -> str:
        began = time.monotonic()
        chosen = plan(self.reach, mutant, items, whole_file=False, most=self.asked.seconds)
        end = self.forked(mutant, [items[test] for test in chosen.tests], living, kept)
        if end == "import":
            chosen = plan(self.reach, mutant, items, whole_file=True, most=self.asked.seconds)
            end = self.apart(mutant, chosen)
        took = {"tests": len(chosen.tests), "planned": round(chosen.seconds, 1)}
        row = {**mutant._asdict(), "end": end, **took, "wall": round(time.monotonic() - began, 1)}
        with self.out.open("a", encoding="utf-8") as log:
            log.write(json.dumps(row) + "\n")
        return end

    def forked(self, mutant: Mutant, items: Sequence[pytest.Item], living: Functions, kept: Sequence[Any]) -> str:
        reader, writer = os.pipe()
        place = tempfile.mkdtemp()
        child = os.fork()
        if child == 0:

            def say(end: str) -> None:
                os.write(writer, end.encode())
                os._exit(0)

            try:
                resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
                went = put_in(mutant, living)
                if went is None:
                    say("same")
                if not went:
                    say("import")
                if not items:
                    say("survived")
                for one in kept:
                    one.cache_clear()
                items[0].config._tmp_path_factory._basetemp = Path(place)  # type: ignore[attr-defined]
                run(items, self.reach, say)
            except BaseException as escaped:  # noqa: BLE001 - whatever it is, the fault was noticed
                say(f"escaped {type(escaped).__name__}")
        os.close(writer)
        end = ended(child, reader)
        shutil.rmtree(place, ignore_errors=True)
        return end

    def apart(self, mutant: Mutant, chosen: Plan) -> str:
        """The same in a process that imports the module with its fault."""
        asked = json.dumps([list(mutant), chosen.tests, chosen.seconds])
        limit = 60 + 10 * chosen.seconds
        try:
            told = subprocess.run(
                [sys.executable, "-m", "tests.mutation.mutate", "--one"], input=asked, capture_output=True, text=True, timeout=limit,
                cwd=ROOT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "slow"
        return told.stdout.strip().rpartition("\n")[2] or f"escaped {told.returncode}"


def ended(child: int, reader: int) -> str:
    """What a process says before it ends."""
    stop = time.monotonic() + WALL
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > stop:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    with os.fdopen(reader) as told:
        return told.read() or "slow"


class One:
    """A plugin of pytest that runs the tests of one mutant, until one fails."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.tests = tests
        self.out = os.dup(1)

    def say(self, end: str) -> None:
        os.write(self.out, f"\n{end}\n".encode())
        os._exit(0)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        missing = [test for test in self.tests if test not in items]
        if missing:
            self.say(f"{missing[0]} is gone")
        run([items[test] for test in self.tests], Reach({}, {}), self.say)
        return True


def run_one(asked: str) -> None:
    fields, tests, _ = json.loads(asked)
    mutant = Mutant(*fields)
    one = One(tests)
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
    options.add_argument("--reach", type=Path, nargs="+", default=[Path("reach.json")])
    options.add_argument("--most", type=int, help="Stop after so many that were not run before.")
    options.add_argument("--seconds", type=float, default=1e9, help="Of tests, for one mutant.")
    options.add_argument("--only", help="A part of the name of the files whose mutants are drawn.")
    options.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.one:
        run_one(sys.stdin.read())
    reach = read(*asked.reach)
    every = [mutant for mutant in mutants() if asked.only is None or asked.only in mutant.file]
    chosen = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
    driver = Driver(chosen, reach, asked)
    os.chdir(ROOT)
    pytest.main([*OPTIONS, *sorted({test.partition("::")[0] for test in reach.seconds})], plugins=[driver])


if __name__ == "__main__":
    main()

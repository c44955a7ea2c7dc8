"""Which tests run which functions of the packages in `ROOMS`, and how long each takes.

    python -m tests.mutation.reach --out reach.json --processes 8 [tests …]

Each function begins with a mark that takes itself away when it is first reached, and comes back before the next test:
a run with marks costs hardly more than one without. Tests of one saved kernel share what was found of it, so that each
of them has the functions of all. What is kept between other tests is let go after each of them; what a fixture runs,
all tests of its file may lean on.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import functools
import gc
import importlib
import itertools
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from tests.mutation.faults import ROOMS, ROOT, compiled, first_line, functions, parsed, place_of

TESTS = (
    *("artifact_inspector", "tests/unit", "tests/property", "tests/golden", "tests/oracle", "tests/cases"),
    *("tests/corpus", "tests/passes", "tests/libraries", "tests/plugin", "tests/test_docs.py", "tests/test_new_fact.py"),
    *("tests/diagnosis", "tests/test_schemas.py"),
)  # fmt: skip
"""What can notice a fault; the rest looks at the project, at processes, or at pages in a browser."""
OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--no-header", "--assert=plain"),
    *("--hypothesis-seed=0", "-m", "not exhaustive"),
)
TOGETHER = 8
"""Tests of one piece that one process takes at a time."""
OF_A_KERNEL = re.compile(r"\[.*?(\d+\.\d+\.\d+/(?:sm_|gfx)\w+/\w+)")


def piece_of(nodeid: str) -> str:
    """What a test shares with others: a saved kernel, or a file of tests."""
    found = OF_A_KERNEL.search(nodeid)
    return nodeid.partition("::")[0] if found is None else found[1]


class Reach(NamedTuple):
    """What was recorded."""

    seconds: dict[str, float]
    """Test → on the clock, as it may wait for processes; those that did not pass are missing."""
    lines: dict[str, dict[int, set[str]]]
    """File → first line of a function → tests, and pieces."""
    left_out: frozenset[str] = frozenset()
    """Tests that did not pass, or took too long."""

    def tests(self, file: str, lines: list[int] | None = None) -> list[str]:
        """Those that run a function with one of some first lines, or any of the file."""
        of = self.lines.get(file, {})
        ran = {one for line in (of if lines is None else lines) for one in of.get(line, ())}
        return [test for test in self.seconds if test in ran or piece_of(test) in ran]


def read(*places: Path) -> Reach:
    """Several records as one."""
    seconds: dict[str, float] = {}
    found: dict[str, dict[int, set[str]]] = {}
    left_out: set[str] = set()
    for place in places:
        told = json.loads(place.read_text(encoding="utf-8"))
        left_out.update(told["failed"])
        seconds |= {test: took for test, took in told["seconds"].items() if test not in told["failed"]}
        for file, lines in told["lines"].items():
            for line, tests in lines.items():
                found.setdefault(file, {}).setdefault(int(line), set()).update(tests)
    return Reach(seconds, found, frozenset(left_out))


def caches() -> list[Any]:
    """All that functions of this project and of its tests have kept."""
    gc.unfreeze()
    kind = type(functools.cache(len))
    return [one for one in gc.get_objects() if isinstance(one, kind) and is_ours(one.__wrapped__)]


def is_ours(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(str(ROOT)) and "/.venv/" not in code.co_filename


def import_rooms() -> None:
    """Import every module of the rooms, so that its functions live before the tests begin."""
    for room in ROOMS:
        for path in (ROOT / "artifact_inspector" / room).rglob("*.py"):
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))


class Marks:
    """Marks at the beginning of each living function."""

    def __init__(self) -> None:
        self.plain: dict[str, list[tuple[FunctionType, CodeType]]] = {}
        self.marked: dict[str, list[CodeType]] = {}
        self.reached: set[str] = set()
        self.gone: set[str] = set()
        living = functions()
        for room in ROOMS:
            for path in (ROOT / "artifact_inspector" / room).rglob("*.py"):
                file = str(path.relative_to(ROOT))
                for code in codes(marked_module(path, file)):
                    for function in living.get(place_of(code), ()):
                        if function.__code__.co_freevars == code.co_freevars:
                            key = f"{file}:{code.co_firstlineno}"
                            self.plain.setdefault(key, []).append((function, function.__code__))
                            self.marked.setdefault(key, []).append(code)
        builtins.__reached__ = self.reach  # type: ignore[attr-defined]
        self.gone = set(self.plain)

    def reach(self, key: str) -> None:
        self.reached.add(key)
        self.gone.add(key)
        for function, code in self.plain.get(key, ()):
            function.__code__ = code

    def take(self) -> set[str]:
        """What was reached since the last call; all marks are back."""
        for key in self.gone:
            for (function, _), code in zip(self.plain.get(key, ()), self.marked.get(key, ()), strict=True):
                function.__code__ = code
        reached = set(self.reached)
        self.reached.clear()
        self.gone.clear()
        return reached


def marked_module(path: Path, file: str) -> CodeType:
    tree = parsed(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            mark = ast.parse(f"__reached__({f'{file}:{first_line(node)}'!r})").body[0]
            node.body.insert(1 if ast.get_docstring(node) is not None else 0, mark)
    return compiled(tree, file)


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from codes(one)


class Recorder:
    """A plugin of pytest that notes what each test runs."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.out: Path = asked.out.absolute()
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.lines: dict[str, dict[int, set[str]]] = {}
        self.last = self.context = ""
        self.written = 0.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the first parameters of each test."""
        kept: dict[str, int] = {}
        for item in list(items):
            name = item.nodeid.partition("[")[0]
            kept[name] = kept.get(name, 0) + 1
            if kept[name] > self.asked.most:
                items.remove(item)

    def pytest_collection_finish(self) -> None:
        import_rooms()
        self.caches = caches()
        self.marks = Marks()

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Side by side: each process takes a few tests of one piece at a time, and writes a record of its own."""
        if self.asked.processes == 1:
            return None
        lists = [
            list(some)
            for _, of in itertools.groupby(session.items, key=lambda item: piece_of(item.nodeid))
            for some in batched(list(of), TOGETHER)
        ]
        out = self.out

        def work(number: int, taken: Iterator[int]) -> None:
            self.out = out.with_suffix(f".{number}.json")
            before: pytest.Item | None = None
            for item in itertools.chain.from_iterable(lists[turn] for turn in taken):
                if before is not None:
                    before.config.hook.pytest_runtest_protocol(item=before, nextitem=item)
                before = item
            if before is not None:
                before.config.hook.pytest_runtest_protocol(item=before, nextitem=None)
            self.write()

        side_by_side(self.asked.processes, len(lists), work, session, self.asked.wall)
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        piece = piece_of(item.nodeid)
        if piece != self.last or piece.endswith(".py"):
            for one in self.caches:
                one.cache_clear()
        self.last = piece
        if time.monotonic() - self.written > 20:
            self.written = time.monotonic()
            self.write()
        began = time.monotonic()
        self.note_under(piece)
        yield
        self.seconds[item.nodeid] = time.monotonic() - began
        if self.seconds[item.nodeid] > self.asked.longest:
            self.failed.add(item.nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        piece = piece_of(item.nodeid)
        if piece.endswith(".py"):
            self.note_under(item.nodeid)
        signal.setitimer(signal.ITIMER_VIRTUAL, self.asked.longest)
        yield
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.note_under(piece)

    def note_under(self, context: str) -> None:
        if context != self.context:
            for key in self.marks.take():
                file, _, line = key.rpartition(":")
                self.lines.setdefault(file, {}).setdefault(int(line), set()).add(self.context)
            self.context = context

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def write(self) -> None:
        """Function by function what ran it: tests, and pieces for what all their tests lean on."""
        self.note_under("")
        lines = {
            file: {line: sorted(one for one in tests if one) for line, tests in of.items()}
            for file, of in self.lines.items()
        }
        told = {"seconds": self.seconds, "failed": sorted(self.failed), "lines": lines}
        self.out.write_text(json.dumps(told), encoding="utf-8")


def too_long(*_: object) -> None:
    raise TimeoutError("The test takes too long to be recorded.")


def batched(items: list[pytest.Item], size: int) -> Iterator[list[pytest.Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


Work = Callable[[int, Iterator[int]], None]


def side_by_side(processes: int, turns: int, work: Work, session: pytest.Session, wall: float = 1e9) -> None:
    """Fork; each process works on what it takes of so many turns, the next one that none has."""
    source, queue = os.pipe()
    os.write(queue, b"".join(turn.to_bytes(3, "little") for turn in range(turns)))
    os.close(queue)

    def taken() -> Iterator[int]:
        while turn := os.read(source, 3):
            yield int.from_bytes(turn, "little")

    children = []
    for number in range(processes):
        if (child := os.fork()) == 0:
            session.config._tmp_path_factory._basetemp = Path(tempfile.mkdtemp())  # type: ignore[attr-defined]
            try:
                work(number, taken())
            finally:
                os._exit(0)
        children.append(child)
    stop = time.monotonic() + wall
    while children:
        for child in list(children):
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                children.remove(child)
            elif time.monotonic() > stop:
                os.kill(child, signal.SIGKILL)
        time.sleep(0.05)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--out", type=Path, default=Path("reach.json"))
    options.add_argument("--most", type=int, default=sys.maxsize, help="Parameters of one test that are recorded.")
    options.add_argument("--longest", type=float, default=10, help="Seconds; a longer test is left out.")
    options.add_argument("--processes", type=int, default=1, help="Side by side; each writes its own record.")
    options.add_argument("--wall", type=float, default=1e9, help="Seconds after which these are ended.")
    options.add_argument("tests", nargs="*", default=TESTS)
    asked = options.parse_args()
    recorder = Recorder(asked)
    os.chdir(ROOT)
    signal.signal(signal.SIGVTALRM, too_long)
    pytest.main([*OPTIONS, *asked.tests], plugins=[recorder])
    if asked.processes == 1:
        recorder.write()
        print(len(recorder.seconds), "tests,", len(recorder.failed), "did not pass:", *sorted(recorder.failed)[:20])


if __name__ == "__main__":
    main()

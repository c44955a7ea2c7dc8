"""Which tests run which lines of `analysis/` and `comparison/`, and how long each takes.

    python -m tests.mutation.reach --out reach.json [tests …]      (needs coverage)

Tests of one saved kernel share what was found of it, so that each of them has the lines of all. What is kept between
other tests is let go after each of them; what a fixture runs, all tests of its file may lean on.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mutation.faults import FILES, ROOT

TESTS = (
    *("artifact_inspector", "tests/unit", "tests/property", "tests/golden", "tests/oracle", "tests/cases"),
    *("tests/corpus", "tests/passes", "tests/libraries", "tests/plugin", "tests/test_docs.py", "tests/test_new_fact.py"),
)  # fmt: skip
"""What can notice a fault; the rest looks at the project, at processes, or at pages in a browser."""
OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--no-header", "--assert=plain"),
    "--hypothesis-seed=0",
)
OF_A_KERNEL = re.compile(r"\[.*?(\d+\.\d+\.\d+/(?:sm_|gfx)\w+/\w+)")


def piece_of(nodeid: str) -> str:
    """What a test shares with others: a saved kernel, or a file of tests."""
    found = OF_A_KERNEL.search(nodeid)
    return nodeid.partition("::")[0] if found is None else found[1]


class Reach(NamedTuple):
    """What was recorded."""

    seconds: dict[str, float]
    """Test → of processor time; those that did not pass are missing."""
    lines: dict[str, dict[int, set[str]]]
    """File → line → tests, and pieces."""

    def tests(self, file: str, lines: range | None = None) -> list[str]:
        """Those that run one of some lines, or any of the file."""
        of = self.lines.get(file, {})
        ran = {one for line in (of if lines is None else lines) for one in of.get(line, ())}
        return [test for test in self.seconds if test in ran or piece_of(test) in ran]


def read(*places: Path) -> Reach:
    """Several records as one."""
    seconds: dict[str, float] = {}
    found: dict[str, dict[int, set[str]]] = {}
    for place in places:
        told = json.loads(place.read_text(encoding="utf-8"))
        seconds |= {test: took for test, took in told["seconds"].items() if test not in told["failed"]}
        for file, lines in told["lines"].items():
            for line, tests in lines.items():
                found.setdefault(file, {}).setdefault(int(line), set()).update(tests)
    return Reach(seconds, found)


def caches() -> list[Any]:
    """All that functions of this project and of its tests have kept."""
    gc.unfreeze()
    kind = type(functools.cache(len))
    return [one for one in gc.get_objects() if isinstance(one, kind) and is_ours(one.__wrapped__)]


def is_ours(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(str(ROOT)) and "/.venv/" not in code.co_filename


class Recorder:
    """A plugin of pytest that notes what each test runs."""

    def __init__(self) -> None:
        from coverage import Coverage  # for this alone

        self.coverage = Coverage(
            data_file=None, config_file=False, include=[f"{files}/*" for files in FILES], messages=False
        )
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.last = self.context = ""

    def pytest_collection_finish(self) -> None:
        self.caches = caches()
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        piece = piece_of(item.nodeid)
        if piece != self.last or piece.endswith(".py"):
            for one in self.caches:
                one.cache_clear()
        self.last = piece
        began = time.process_time()
        self.note_under(piece)
        yield
        self.seconds[item.nodeid] = time.process_time() - began

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        piece = piece_of(item.nodeid)
        if piece.endswith(".py"):
            self.note_under(item.nodeid)
        yield
        self.note_under(piece)

    def note_under(self, context: str) -> None:
        if context != self.context:
            self.context = context
            self.coverage.switch_context(context)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def told(self) -> dict[str, Any]:
        """Line by line what ran it: tests, and pieces for what all their tests lean on."""
        self.coverage.stop()
        noted = self.coverage.get_data()
        lines = {
            str(Path(file).relative_to(ROOT)): {
                line: [one for one in contexts if one] for line, contexts in noted.contexts_by_lineno(file).items()
            }
            for file in noted.measured_files()
        }
        return {"seconds": self.seconds, "failed": sorted(self.failed), "lines": lines}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    options.add_argument("--out", type=Path, default=Path("reach.json"))
    options.add_argument("tests", nargs="*", default=TESTS)
    asked = options.parse_args()
    out = asked.out.absolute()
    os.chdir(ROOT)
    recorder = Recorder()
    pytest.main([*OPTIONS, *asked.tests], plugins=[recorder])
    out.write_text(json.dumps(recorder.told()), encoding="utf-8")
    print(len(recorder.seconds), "tests,", len(recorder.failed), "did not pass:", *sorted(recorder.failed)[:20])


if __name__ == "__main__":
    main()

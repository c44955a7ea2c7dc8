"""The search for the release in which a kernel changed, with compiles that a table answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.passes import bisection
from artifact_inspector.passes.bisection import Bisection, bisect
from artifact_inspector.passes.dump_facts import DumpFact, Topic
from artifact_inspector.passes.trace import FactChange, PassLevel, PassRun, PassTrace

KEY = "straight.verdict"


class Compiles:
    """A subject whose compiles say what a table says; None refuses."""

    name, target = "gemv", parse_target("gfx942")

    def __init__(self, verdicts: Mapping[str, str | None]) -> None:
        self.verdicts = verdicts
        self.asked: list[str] = []

    @contextmanager
    def compile_without_dumps(self, notice: object, triton: str) -> Iterator[Any]:
        self.asked.append(triton)
        verdict = self.verdicts[triton]
        if verdict is None:
            raise CompileError("no such option", "Leave it out.")
        yield SimpleNamespace(files={"ttgir": None}, verdict=verdict)


def observed(artifact: Any, stage: object, text: object, wanted: object) -> dict[str, DumpFact]:
    return {
        KEY: DumpFact(Topic.ORDER, KEY, "straight verdict", "", artifact.verdict),
        "straight.order": DumpFact(Topic.ORDER, "straight.order", "straight order", "", object().__hash__()),
    }


def step(index: int, name: str, level: PassLevel, before: str, after: str) -> PassRun:
    change = FactChange(Topic.ORDER, KEY, "straight verdict", "", before, after)
    return PassRun(index, name, name.lower(), level, 1, True, None, (change,))


def traced(subject: Any, wanted: object, *, triton: str, notice: object) -> PassTrace:
    steps = (
        step(1, "Reorder", PassLevel.TTGIR, "interleaved", "clustered"),
        step(2, "Sink", PassLevel.LLVM, "clustered", "interleaved"),
    )
    of_ttgir = steps if subject.verdicts[triton] == "clustered" else ()
    return PassTrace("gemv", "gfx942", triton, of_ttgir, (), ())


@pytest.fixture(autouse=True)
def without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisection, "read_dump_facts", observed)
    monkeypatch.setattr(bisection, "trace_passes", traced)


def search(compiles: Compiles, *releases: str) -> Bisection:
    return bisect(cast("Any", compiles), [Topic.ORDER], releases)


CHANGED = {
    "3.2.0": "clustered",
    "3.3.1": "clustered",
    "3.4.0": "interleaved",
    "3.5.1": "interleaved",
    "3.6.0": "interleaved",
}


def test_the_neighbours_between_which_it_changed_are_found_by_halves() -> None:
    compiles = Compiles(CHANGED)
    assert search(compiles, "3.2.0", "3.6.0").changed_between == ("3.3.1", "3.4.0")
    assert len(compiles.asked) == len(set(compiles.asked)) == 4


def test_the_ends_may_be_given_newest_first() -> None:
    assert search(Compiles(CHANGED), "3.6.0", "3.2.0").changed_between == ("3.3.1", "3.4.0")


def test_ends_that_agree_are_all_that_is_compiled() -> None:
    compiles = Compiles({**CHANGED, "3.6.0": "clustered"})
    found = search(compiles, "3.2.0", "3.6.0")
    assert found.changed_between is None
    assert found.differences == ()
    assert compiles.asked == ["3.2.0", "3.6.0"]


@pytest.mark.parametrize("refusing", [["3.4.0"], ["3.3.1", "3.4.0"], ["3.3.1", "3.4.0", "3.5.1"]])
def test_a_release_that_refuses_is_a_row_and_the_search_goes_around_it(refusing: list[str]) -> None:
    verdicts = {**CHANGED, **dict.fromkeys(refusing)}
    found = search(Compiles(verdicts), "3.2.0", "3.6.0")
    told = [release for release in CHANGED if release not in refusing]
    first = next(release for release in told if verdicts[release] == "interleaved")
    assert found.changed_between == (told[told.index(first) - 1], first)
    refused = [one for one in found.releases if one.message is not None]
    assert [one.triton for one in refused] == refusing
    assert {one.message for one in refused} == {"no such option"}


def test_an_end_that_refuses_is_an_error() -> None:
    with pytest.raises(CompileError, match=r"Triton 3\.6\.0 refuses the kernel: no such option"):
        search(Compiles({**CHANGED, "3.6.0": None}), "3.2.0", "3.6.0")


def test_of_a_list_every_release_is_tried_and_the_first_change_told() -> None:
    compiles = Compiles({"3.2.0": "clustered", "3.4.0": "interleaved", "3.6.0": "clustered"})
    found = search(compiles, "3.2.0", "3.4.0", "3.6.0")
    assert compiles.asked == ["3.2.0", "3.6.0", "3.4.0"]
    assert found.changed_between == ("3.2.0", "3.4.0")  # the ends agree, and it changed all the same
    assert [one.triton for one in found.releases] == ["3.2.0", "3.4.0", "3.6.0"]


def test_the_pass_on_either_side_is_one_of_the_stage_that_differs() -> None:
    (difference,) = search(Compiles(CHANGED), "3.2.0", "3.6.0").differences
    assert (difference.stage, difference.key) == ("ttgir", KEY)
    assert (difference.older_value, difference.newer_value) == ("clustered", "interleaved")
    assert difference.older_pass is not None
    assert difference.older_pass[0].name == "Reorder"  # Sink came later, of another stage
    assert difference.newer_pass is None


def test_one_release_is_no_search() -> None:
    with pytest.raises(UsageError, match="needs two releases"):
        search(Compiles(CHANGED), "3.2.0")

"""The saved caches under fixtures/, as the manifest lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact, open_cache, read_stage
from artifact_inspector.formats import format_of
from artifact_inspector.model import Module, Stage
from artifact_inspector.model.text import SourceText

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"


class Saved(NamedTuple):
    """One kernel, compiled by one Triton for one target."""

    path: str
    version: str
    target: str
    kernel: str
    source: Path
    """The kernel's module, relative to the root."""
    has_lines: bool

    @property
    def artifact(self) -> Artifact:
        return _artifact(self.path)

    @property
    def facts(self) -> KernelFacts:
        return facts(self.path)

    @property
    def stages(self) -> list[Stage]:
        return [stage for stage in Stage if stage.value in self.artifact.files]

    def text(self, stage: Stage) -> str:
        return _source_of(self.path, stage).text

    def module(self, stage: Stage) -> Module:
        return _module(self.path, stage)


Check = Callable[[Saved, Stage], None]


def every_third(values: Iterable[Any]) -> list[Any]:
    """Parameters of which every third runs always, one of the others with the long tests, one with the exhaustive."""
    marks = ((), pytest.mark.long, pytest.mark.exhaustive)
    return [pytest.param(value, marks=marks[number % 3]) for number, value in enumerate(values)]


def each_stage(
    kernels: Iterable[Saved], *wanted: Stage, is_slow: bool = False
) -> Callable[[Check], Callable[[Saved], None]]:
    """Makes a check of one stage a test of each kernel: of all stages that it has, or of those of some.

    Every third kernel of a slow check runs always.
    """

    def test_of(check: Check) -> Callable[[Saved], None]:
        found = [k for k in kernels if not wanted or set(wanted) & set(k.stages)]

        @pytest.mark.parametrize("kernel", every_third(found) if is_slow else found, ids=lambda kernel: kernel.path)
        def test(kernel: Saved) -> None:
            for stage in kernel.stages:
                if not wanted or stage in wanted:
                    check(kernel, stage)

        test.__name__, test.__module__ = check.__name__, check.__module__
        return test

    return test_of


def saved_kernels(**wanted: str) -> list[Saved]:
    """Every fixture that compiled, or those with some version, target or kernel."""
    return [found for found in _every() if all(getattr(found, key) == value for key, value in wanted.items())]


@cache
def _every() -> list[Saved]:
    rows = json.loads((FIXTURES / "manifest.json").read_text(encoding="utf-8"))
    return [
        Saved(
            row["path"],
            row["triton"],
            row["target"],
            row["kernel"],
            _source(row["reference"]),
            row["triton"] >= "3" and "TRITON_DISABLE_LINE_INFO" not in row["environment"],
        )
        for row in rows
        if row.get("files")
    ]


def saved(path: str) -> Saved:
    """The fixture at `<version>/<target>/<kernel>`."""
    return next(found for found in _every() if found.path == path)


@cache
def _source(reference: str) -> Path:
    """`kernels.softmax` is kernels/softmax.py, `sources.two_loops:FIRST` is fixtures/sources/two_loops.py.

    A source may compile a kernel of another one with other options.
    """
    package, _, module = reference.partition(":")[0].partition(".")
    place = Path("fixtures" if package == "sources" else "", package, f"{module}.py")
    borrowed = re.search(
        r"^from artifact_inspector\.(\w+\.\w+) import REFERENCE", (ROOT / place).read_text(encoding="utf-8"), re.M
    )
    return place if borrowed is None else _source(borrowed[1])


@cache
def facts(path: str) -> KernelFacts:
    return inspect_artifact(_artifact(path))


# Tests of one kernel run one after the other (tests/conftest.py): a few files at hand are enough.
@lru_cache(maxsize=12)
def _source_of(path: str, stage: Stage) -> SourceText:
    return read_stage(_artifact(path), stage.value).source


@lru_cache(maxsize=12)
def _module(path: str, stage: Stage) -> Module:
    return format_of(stage).parse(_source_of(path, stage), stage)


@cache
def _artifact(path: str) -> Artifact:
    (only,) = open_cache(FIXTURES / path).entries
    return only

"""What several kernels of a run begin with is parsed once, and each is told just what it would be told alone."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from saved import FIXTURES

from artifact_inspector.facts import reading, stage_reading
from artifact_inspector.facts.inspection import inspect_artifact, inspect_cache
from artifact_inspector.facts.kernel import read_everything, read_nothing
from artifact_inspector.facts.reading import TextCache, computed_from_text
from artifact_inspector.facts.stage_reading import StageReading
from artifact_inspector.files.cache import Problem, open_cache
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

SWEEP = FIXTURES / "3.9.0"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[Stage, str]]:
    """How often each text is parsed."""
    counts: Counter[tuple[Stage, str]] = Counter()
    parse = stage_reading.parse_source

    def counted(source: SourceText, stage: Stage, problems: list[Problem]) -> object:
        counts[stage, source.text] += 1
        return parse(source, stage, problems)

    monkeypatch.setattr(stage_reading, "parse_source", counted)
    return counts


def twice(tmp_path: Path) -> Path:
    """A cache that has one kernel in two directories."""
    (kernel,) = (SWEEP / "sm_80" / "matmul_grouped").iterdir()
    for name in ("ONE", "TWO"):
        shutil.copytree(kernel, tmp_path / name)
    return tmp_path


def test_a_program_that_two_kernels_begin_with_is_parsed_once(
    tmp_path: Path, parsed: Counter[tuple[Stage, str]]
) -> None:
    first, second = inspect_cache(open_cache(twice(tmp_path)))
    of_stage = {stage: count for (stage, _), count in parsed.items()}
    assert of_stage == {Stage.TTIR: 1, Stage.TTGIR: 2, Stage.LLIR: 2, Stage.PTX: 2}
    files = [kernel.stages[Stage.TTIR].file for kernel in (first, second)]
    assert files[0].startswith("ONE/")
    assert files[1].startswith("TWO/")


VERSIONS = sorted(path.name for path in FIXTURES.glob("[0-9]*"))


@pytest.mark.long
@pytest.mark.parametrize(
    "version", [pytest.param(v, marks=[pytest.mark.exhaustive] if v == "3.6.0" else []) for v in VERSIONS]
)
def test_facts_are_the_same_in_company_and_alone(version: str) -> None:
    cache = open_cache(FIXTURES / version)
    for together in inspect_cache(cache):
        alone = inspect_artifact(together.artifact)
        assert together == alone, together.artifact.directory


def test_what_is_wrong_with_a_text_is_told_of_each_of_its_files(tmp_path: Path) -> None:
    for name in ("ONE", "TWO"):
        file = twice(tmp_path / name) / "ONE" / "matmul_kernel.ttir"
        file.write_text(file.read_text().replace("tt.load", "tt.load )("))
        shutil.rmtree(tmp_path / name / "TWO")
        (tmp_path / name / "ONE").rename(tmp_path / f"of_{name}")
        (tmp_path / name).rmdir()
    found = list(inspect_cache(open_cache(tmp_path)))
    alone = [inspect_artifact(kernel.artifact) for kernel in found]
    assert [kernel.problems for kernel in found] == [kernel.problems for kernel in alone]


def test_a_fault_is_told_of_each_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(*_: object) -> object:
        raise KeyError("here")

    broken = computed_from_text(find)
    broken.name = "accesses"
    monkeypatch.setattr(StageReading, "accesses", broken)
    told = [kernel.problems for kernel in inspect_cache(open_cache(twice(tmp_path)))]
    assert next(problem.path for problem in told[0]) == "ONE/matmul_kernel.ttir"
    assert next(problem.path for problem in told[1]) == "TWO/matmul_kernel.ttir"


def test_facts_read_after_the_view_are_computed_for_each_kernel(
    tmp_path: Path, parsed: Counter[tuple[Stage, str]]
) -> None:
    for kernel in list(inspect_cache(open_cache(twice(tmp_path)), view=lambda kernel: kernel.program)):
        read_everything(kernel)
    of_stage = {stage: count for (stage, _), count in parsed.items()}
    assert of_stage == {Stage.TTIR: 3, Stage.TTGIR: 4, Stage.LLIR: 4, Stage.PTX: 4}


def test_kernels_of_which_a_view_reads_nothing_share_texts_later(
    tmp_path: Path, parsed: Counter[tuple[Stage, str]]
) -> None:
    for kernel in list(inspect_cache(open_cache(twice(tmp_path)), view=read_nothing)):
        read_everything(kernel)
    assert {stage: count for (stage, _), count in parsed.items()}[Stage.TTIR] == 1


def test_no_more_is_kept_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_CHARACTERS", 10)
    kept = TextCache()
    kept.members_of(Stage.TTIR, "1234")["module"] = 1
    kept.members_of(Stage.TTIR, "5678")["module"] = 2
    assert kept.members_of(Stage.TTIR, "1234") == {"module": 1}  # and that is asked for last, now
    kept.members_of(Stage.TTIR, "90123")["module"] = 3
    assert kept.members_of(Stage.TTIR, "1234") == {"module": 1}
    assert kept.members_of(Stage.TTGIR, "1234") == {}
    assert kept.members_of(Stage.TTIR, "5678") == {}
    kept.members_of(Stage.TTIR, "longer than ten")["module"] = 4
    assert kept.members_of(Stage.TTIR, "longer than ten") == {}

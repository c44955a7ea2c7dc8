"""A kernel's facts as flat rows with stable names, by which two kernels can be compared.

`FACTS` holds every fact. Loops are named by their order in the program, not by their line. PTX and AMDGCN are
both `assembly`. A row that does not apply is absent; an unknown value is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model.tile import Tile
from artifact_inspector.model.verdict import OrderVerdict
from artifact_inspector.model.version import TritonVersion
from artifact_inspector.vocabulary import file_facts, finding_facts, iteration_facts, kernel_facts, region_facts
from artifact_inspector.vocabulary.fact import (
    Absent,
    Category,
    Fact,
    FactValue,
    Of,
    RegionSubject,
    Row,
    StageSubject,
    Subject,
    Value,
    facts_in,
)
from artifact_inspector.vocabulary.names import STEPS, name_regions, step_of
from artifact_inspector.vocabulary.options import read_options

CATEGORIES = tuple(Category)
"""Categories of rows, the most important first."""

FACTS: tuple[Fact, ...] = tuple(
    fact
    for module in (kernel_facts, file_facts, region_facts, iteration_facts, finding_facts)
    for fact in facts_in(module)
)
"""Every fact, in the order of reports."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One kernel: its identity and its facts."""

    name: str
    target: str | None
    triton: TritonVersion | None
    signature: tuple[str, ...] | None
    """Types of its arguments; None without tensor-level IR."""
    tiles: tuple[Tile, ...] | None
    options: Mapping[str, Value]
    """Options of the compile, from the metadata."""
    steps: tuple[str, ...]
    """Stages that were read."""
    rows: tuple[Row, ...]
    """In the order of reports."""

    @property
    def facts(self) -> dict[str, Value]:
        """Key → value."""
        return {row.key: row.value for row in self.rows}


def summarise(
    kernel: KernelFacts, names: Mapping[str, str] | None = None, facts: Sequence[Fact] | None = None
) -> Summary:
    """The rows of one kernel.

    Args:
        names: of its regions; `name_regions` by default.
        facts: rows of the vocabulary; `FACTS` by default.

    Example:
        >>> summarise(kernel).facts["shared"]  # doctest: +SKIP
        30720
    """
    artifact, program = kernel.artifact, kernel.program
    return Summary(
        name=artifact.display_name, target=None if artifact.target is None else str(artifact.target),
        triton=artifact.triton_version, signature=None if program is None else program.signature,
        tiles=None if program is None else program.tiles, options=read_options(artifact.metadata),
        steps=tuple(step_of(stage) for stage in kernel.stages),
        rows=tuple(_rows(kernel, name_regions(kernel) if names is None else names, FACTS if facts is None else facts)),
    )  # fmt: skip


def story_facts(kernel: KernelFacts, region: str | None = None) -> Iterator[tuple[str, str]]:
    """The facts that the page of a kernel lists by themselves: label and value.

    Args:
        region: id of the region that they are of; None for those of the kernel and of its last text.
    """
    last = kernel.last
    for fact in FACTS:
        if not fact.story_label or fact.is_of_region != (region is not None):
            continue
        subject = _subject_of(fact, kernel, step_of(last.stage)) if last is not None else None
        if region is not None:
            facts = None if last is None else last.region(region)
            subject = None if last is None or facts is None else RegionSubject(kernel, last, facts)
        value = Absent.ABSENT if subject is None else fact(subject)
        if value is not Absent.ABSENT:
            yield fact.story_label, f"{value_words(value)} {fact.unit}".strip()


def value_words(value: FactValue) -> str:
    """A value for people."""
    if isinstance(value, tuple):
        return ", ".join(value)
    return "unknown" if value is None else str(value)


def columns(facts: Sequence[Fact] | None = None) -> tuple[Fact, ...]:
    """The facts that tables of kernels have a column for, in the order of these."""
    with_column = [fact for fact in (FACTS if facts is None else facts) if fact.column is not None]
    return tuple(sorted(with_column, key=lambda fact: 0 if fact.column is None else fact.column.position))


def figure_of(fact: Fact, kernel: KernelFacts) -> Value | Absent:
    """The value of a fact with a column: of a region, that of the main loop."""
    assert fact.column is not None
    subject = _subject_of(fact, kernel, fact.column.step)
    value = Absent.ABSENT if subject is None else fact(subject)
    assert not isinstance(value, Mapping)
    return value


def _subject_of(fact: Fact, kernel: KernelFacts, step: str) -> Subject | None:
    """The kernel, stage or main loop that a column shows a fact of; None where the kernel has none."""
    if fact.of is Of.KERNEL:
        return Subject(kernel)
    if fact.of is Of.STAGE:
        stages = [facts for stage, facts in kernel.stages.items() if step_of(stage) == step]
        return StageSubject(kernel, stages[-1]) if stages else None
    if kernel.last is None:
        return None
    if not fact.is_of_region:
        return StageSubject(kernel, kernel.last)
    region = kernel.principal_region
    return None if region is None else RegionSubject(kernel, kernel.last, region)


def brief_of(key: str, region: str, steps: Sequence[str]) -> str:
    """The name of a fact in one sentence; empty for a fact that only tables show.

    Args:
        key: of a row, as `loop1.in_flight.bytes`.
        region: that the row is of; empty for the whole kernel.
        steps: stages that were read: of facts of each stage, that of the last assembly is reported.
    """
    fact = fact_of(key, region)
    reported_steps = [step for step in steps if step != "sass"][-1:] or steps[-1:]
    is_reported = fact is not None and any(key.endswith(fact.key.format("", step=step)) for step in reported_steps)
    return fact.brief if fact is not None and is_reported else ""


def fact_of(key: str, region: str) -> Fact | None:
    """The fact of a row; None for a member of a family, and for a fact of another version.

    Args:
        key: of a row, as `loop1.in_flight.bytes`.
        region: that the row is of; empty for the whole kernel.
    """
    return _BY_KEY.get(key.removeprefix(f"{region}.") if region else key)


_BY_KEY = {fact.key.format("", step=step): fact for fact in FACTS if fact.is_row for step in STEPS}


def record_values(subject: Subject, *of: Of) -> dict[str, bool | int | float | str | None]:
    """The facts in flat records, by their column; None if one does not apply.

    Args:
        of: kinds of subjects.
    """
    values: dict[str, bool | int | float | str | None] = {}
    for fact in FACTS:
        if fact.record and fact.of in of:
            value = fact(subject)
            assert not isinstance(value, Mapping)
            value = None if value is Absent.ABSENT else value
            values[fact.record] = ", ".join(value) if isinstance(value, tuple) else value
    return values


def verdict_words(region: RegionFacts) -> str | None:
    """The verdict with its distance and groups; None where it is unknown."""
    return None if region.verdict is OrderVerdict.UNKNOWN else region.verdict_text


def _rows(kernel: KernelFacts, names: Mapping[str, str], facts: Sequence[Fact]) -> Iterator[Row]:
    of: dict[Of, list[Fact]] = {kind: [] for kind in Of}
    for fact in facts:
        if fact.is_row and fact.category is not Category.FINDINGS:
            of[fact.of].append(fact)
    last = kernel.last
    yield from _rows_of(of[Of.KERNEL], Subject(kernel))
    if last is not None:
        yield from _rows_of(of[Of.FILE], StageSubject(kernel, last), step_of(last.stage))
    for stage, stage_facts in kernel.stages.items():
        yield from _rows_of(of[Of.STAGE], StageSubject(kernel, stage_facts), step_of(stage))
    for region in sorted(names, key=lambda region: region != kernel.principal):
        yield from _of_region(kernel, region, names[region], of)
    yield from _rows_of([fact for fact in facts if fact.category is Category.FINDINGS], Subject(kernel))


def _of_region(kernel: KernelFacts, region: str, name: str, of: Mapping[Of, Sequence[Fact]]) -> Iterator[Row]:
    latest: RegionFacts | None = None
    for stage, facts in kernel.stages.items():
        region_facts = facts.region(region)
        if region_facts is not None:
            latest = region_facts
            yield from _rows_of(
                of[Of.REGION_AT_STAGE], RegionSubject(kernel, facts, region_facts), step_of(stage), name
            )
    if kernel.last is not None and latest is not None:
        step = step_of(kernel.last.stage)
        yield from _rows_of(of[Of.REGION], RegionSubject(kernel, kernel.last, latest), step, name)


def _rows_of(facts: Sequence[Fact], subject: Subject, step: str = "", region: str = "") -> Iterator[Row]:
    for fact in facts:
        value = fact(subject)
        if value is Absent.ABSENT:
            continue
        members = value.items() if isinstance(value, Mapping) else (("", value),)
        for member, member_value in members:
            key, label = (text.format(member, step=step) for text in (fact.key, fact.label))
            key = f"{region}.{key}" if region else key
            yield Row(key, fact.category, label, fact.unit, member_value, fact.step or step, region)

"""Two kernels side by side: every fact, every region at every stage, and who made them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundPlacement
from artifact_inspector.comparison.fact_pair import SIDES, FactPair, PairSide, State
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    Difference,
    find_differences,
)
from artifact_inspector.comparison.sign import sign_facts
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary.fact import Category, Row
from artifact_inspector.vocabulary.names import STEPS, name_regions, step_of
from artifact_inspector.vocabulary.options import OPTIONS, SHARED_OPTIONS
from artifact_inspector.vocabulary.rows import Summary, summarise, verdict_words

ITSELF = "the program itself"


class Side(NamedTuple):
    """A region at one stage of one kernel."""

    stage: Stage
    region: RegionFacts

    @property
    def rounds(self) -> tuple[RoundPlacement, ...]:
        """Where each round stands."""
        return tuple(found.placement for found in self.region.rounds)


@dataclass(frozen=True, slots=True)
class StagePair:
    """A region at one stage of both kernels; None where a kernel lacks the stage, or the loop there."""

    step: str
    left: Side | None
    right: Side | None
    compared: bool
    """False where one kernel lacks the whole stage, or a verdict is unknown."""

    @property
    def agree(self) -> bool | None:
        """Whether both have the same verdict; None where it cannot be told."""
        if not self.compared:
            return None
        ours = None if self.left is None else verdict_words(self.left.region)
        return ours == (None if self.right is None else verdict_words(self.right.region))


class VerdictChange(NamedTuple):
    """Where a kernel's verdict first differs from its own previous stage."""

    side: PairSide
    """`left` or `right`."""
    step: str
    components: tuple[str, ...]
    """Who may have done it: one, or several where stages in between are missing."""
    before: str
    after: str
    lines: tuple[tuple[int, int], ...]
    """First load and last compute of each round, in the file of the stage."""


class FirstDivergence(NamedTuple):
    """Where the verdicts of two kernels first differ."""

    step: str
    components: tuple[str, ...]
    """Who may have done it; `the program itself` where two sources or configurations differ to begin with."""
    left: str
    right: str
    left_lines: tuple[tuple[int, int], ...]
    right_lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RegionPair:
    """A region of the program in both kernels."""

    name: str
    """`loop1`, `straight`: by its order in the program."""
    left: str | None
    """Its id there; None where that kernel has no such region."""
    right: str | None
    is_principal: bool
    stages: tuple[StagePair, ...]
    first_divergence: FirstDivergence | None
    verdict_changes: tuple[VerdictChange, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kernels held against each other."""

    left: KernelFacts
    right: KernelFacts
    sides: tuple[Candidate, Candidate]
    """What the two are known by."""
    differences: tuple[Difference, ...]
    """In what they are not the same kernel."""
    options: tuple[FactPair, ...]
    facts: tuple[FactPair, ...]
    regions: tuple[RegionPair, ...]
    """The principal one first."""
    notes: tuple[str, ...]
    """What could not be compared."""

    @property
    def is_same(self) -> bool:
        """True where no known fact differs."""
        return not any(fact.differs for fact in self.facts) and not any(
            stage.agree is False for region in self.regions for stage in region.stages
        )

    @property
    def first_divergence(self) -> FirstDivergence | None:
        """Of the first region that parts, the principal one before all others."""
        return next((region.first_divergence for region in self.regions if region.first_divergence is not None), None)


def compare_kernels(left: KernelFacts, right: KernelFacts, sides: tuple[Candidate, Candidate] | None = None) -> Pair:
    """Everything that two kernels have in common, and what they have not.

    `compare_kernels(a, b)` is the mirror image of `compare_kernels(b, a)`.

    Args:
        sides: what the two are known by, where it was read before.
    """
    one, other = sides or (Candidate(left.artifact), Candidate(right.artifact))
    names = _names(left, right)
    ours, theirs = summarise(left, names[0]), summarise(right, names[1])
    differences = find_differences(one, other)
    facts = compare_rows(ours, theirs)
    return Pair(
        left,
        right,
        (one, other),
        differences,
        tuple(_options(ours, theirs)),
        facts,
        tuple(_regions(left, right, *names, differences)),
        tuple(_notes(ours, theirs, facts, differences)),
    )


def compare_rows(left: Summary, right: Summary) -> tuple[FactPair, ...]:
    """The facts of both, in the order of reports: those of the left, those of the right where they belong.

    A fact that only one side has differs; a fact of a stage that only one side has is not compared.
    """
    ours, theirs = {row.key: row for row in left.rows}, {row.key: row for row in right.rows}
    pairs = [_fact(ours.get(key), theirs.get(key), left, right) for key in _merged(list(ours), list(theirs))]
    return sign_facts(pairs, left, right)


def _fact(left_row: Row | None, right_row: Row | None, left: Summary, right: Summary) -> FactPair:
    row = left_row or right_row
    assert row is not None
    values = (None if left_row is None else left_row.value, None if right_row is None else right_row.value)
    state, why = State.SAME, ""
    unknown: tuple[PairSide, ...] = ()
    if left_row is None or right_row is None:
        there = right if right_row is None else left
        lacking = PairSide.RIGHT if right_row is None else PairSide.LEFT
        state = State.ONE_SIDED
        if row.step and row.step not in there.steps:
            state, why = State.NOT_COMPARED, f"the {lacking} one has no {row.step}"
        elif row.value is None:
            unknown = SIDES
    elif left_row.step != right_row.step:
        state, why = (
            State.NOT_COMPARED,
            f"read at {left_row.step} on the left, at {right_row.step} on the right",
        )
    elif None in values:
        unknown = tuple(side for side, value in zip(SIDES, values, strict=True) if value is None)
    elif values[0] != values[1]:
        state = State.DIFFERENT
        if row.category == Category.FINDINGS and bool(left.options) != bool(right.options):
            lacking = PairSide.RIGHT if left.options else PairSide.LEFT
            state, why = State.NOT_COMPARED, f"the {lacking} one has no metadata"
    if unknown:
        state = State.NOT_COMPARED
        why = "not known" if unknown == SIDES else f"not known on the {unknown[0]}"
    return FactPair(
        key=row.key,
        category=row.category,
        label=row.label,
        unit=row.unit,
        region=row.region,
        left=values[0],
        right=values[1],
        state=state,
        why=why,
        step=row.step,
        unknown=unknown,
    )


def _merged(ours: list[str], theirs: list[str]) -> list[str]:
    """Keys of both in one order that does not depend on which side is which."""
    place = {key: at for at, key in enumerate(ours)}
    there = {key: at for at, key in enumerate(theirs)}

    def rank(key: str) -> tuple[float, str]:
        spots = [where[key] for where in (place, there) if key in where]
        return (sum(spots) / len(spots), key)

    return sorted({*ours, *theirs}, key=rank)


def _options(ours: Summary, theirs: Summary) -> Iterator[FactPair]:
    for key in OPTIONS:
        one, other = ours.options.get(key), theirs.options.get(key)
        if one is None and other is None:
            continue
        if one is None or other is None:
            if key not in SHARED_OPTIONS:
                continue  # an option of one back end, or of one version
            state = State.NOT_COMPARED
        else:
            state = State.SAME if one == other else State.DIFFERENT
        yield FactPair(key, "options", key, "", "", one, other, state)


# -- regions ---------------------------------------------------------------------------


def _names(left: KernelFacts, right: KernelFacts) -> tuple[dict[str, str], dict[str, str]]:
    """Region id → name, on both sides; what each kernel is known by has one name, whatever its number."""
    ours, theirs = name_regions(left), name_regions(right)
    principal = ours.get(left.principal or ""), theirs.get(right.principal or "")
    if None not in principal and principal[0] != principal[1]:
        ours[left.principal or ""] = theirs[right.principal or ""] = "principal"
    return ours, theirs


def _regions(
    left: KernelFacts,
    right: KernelFacts,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    differences: tuple[Difference, ...],
) -> Iterator[RegionPair]:
    others = any(found.axis in (Axis.SOURCE, Axis.CONFIG) for found in differences)
    ids = {name: region for region, name in ours.items()}, {name: region for region, name in theirs.items()}
    principal = ours.get(left.principal or ""), theirs.get(right.principal or "")
    names = _merged(list(ids[0]), list(ids[1]))
    for name in sorted(names, key=lambda name: name not in principal):
        found = _region_pair(left, right, name, ids[0].get(name), ids[1].get(name), name in principal)
        if others and found.first_divergence is not None and found.first_divergence.step == STEPS[0]:
            found = replace(found, first_divergence=found.first_divergence._replace(components=(ITSELF,)))
        yield found


def _region_pair(
    left: KernelFacts, right: KernelFacts, name: str, ours: str | None, theirs: str | None, is_principal: bool
) -> RegionPair:
    one, other = _sides(left, ours), _sides(right, theirs)
    stages = tuple(
        StagePair(step, one.get(step), other.get(step), _compared(step, left, right, one, other))
        for step in STEPS
        if step in one or step in other
    )
    turns = (_verdict_change(PairSide.LEFT, left, one), _verdict_change(PairSide.RIGHT, right, other))
    return RegionPair(
        name,
        ours,
        theirs,
        is_principal,
        stages,
        _first_divergence(left, right, stages),
        tuple(turn for turn in turns if turn is not None),
    )


def _sides(kernel: KernelFacts, region: str | None) -> dict[str, Side]:
    found = {stage: None if region is None else facts.region(region) for stage, facts in kernel.stages.items()}
    return {step_of(stage): Side(stage, facts) for stage, facts in found.items() if facts is not None}


def _compared(
    step: str,
    left: KernelFacts,
    right: KernelFacts,
    left_sides: Mapping[str, Side],
    right_sides: Mapping[str, Side],
) -> bool:
    for kernel, sides in ((left, left_sides), (right, right_sides)):
        if step not in {step_of(stage) for stage in kernel.stages}:
            return False
        if step in sides and verdict_words(sides[step].region) is None:
            return False
    return True


def _first_divergence(left: KernelFacts, right: KernelFacts, stages: tuple[StagePair, ...]) -> FirstDivergence | None:
    agreed: str | None = None
    both = {step_of(stage) for stage in left.stages} & {step_of(stage) for stage in right.stages}
    found = {stage.step: stage for stage in stages}
    for step in STEPS:
        stage = found.get(step)
        agree = step in both if stage is None else stage.agree  # neither has the region: nothing differs
        if stage is not None and agree is False:
            return FirstDivergence(
                step,
                _components(agreed, step),
                _phrase(stage.left),
                _phrase(stage.right),
                _lines(stage.left),
                _lines(stage.right),
            )
        agreed = step if agree else agreed
    return None


def _verdict_change(side: PairSide, kernel: KernelFacts, sides: Mapping[str, Side]) -> VerdictChange | None:
    before: str | None = None
    for stage in kernel.stages:
        step = step_of(stage)
        found = sides.get(step)
        words = None if found is None else verdict_words(found.region)
        if found is None or words is None:
            continue
        if before is not None:
            was = verdict_words(sides[before].region)
            if was is not None and was != words:
                return VerdictChange(side, step, _components(before, step), was, words, _lines(found))
        before = step
    return None


def _components(before: str | None, step: str) -> tuple[str, ...]:
    """Who stands between two stages; all that came before the first one where none is known."""
    by_step = {step_of(stage): stage.component for stage in Stage}
    first = 0 if before is None else STEPS.index(before) + 1
    return tuple(by_step[name] for name in STEPS[first : STEPS.index(step) + 1])


def _phrase(side: Side | None) -> str:
    return "no such region" if side is None else side.region.phrase


def _lines(side: Side | None) -> tuple[tuple[int, int], ...]:
    if side is None:
        return ()
    spans = []
    for found in side.region.rounds:
        lines = [x for x in (found.first_load, found.last_load, found.first_compute, found.last_compute) if x]
        if lines:
            spans.append((min(lines), max(lines)))
    return tuple(spans)


def _notes(
    ours: Summary, theirs: Summary, facts: tuple[FactPair, ...], differences: tuple[Difference, ...]
) -> Iterator[str]:
    for side, own, other in ((PairSide.LEFT, ours, theirs), (PairSide.RIGHT, theirs, ours)):
        missing = [step for step in STEPS if step in other.steps and step not in own.steps]
        if missing:
            yield f"the {side} one has no {', '.join(missing)}: what only that tells was not compared"
        unknown = [fact.label.strip() for fact in facts if fact.unknown == (side,)]
        if unknown:
            yield f"not known on the {side}: {', '.join(dict.fromkeys(unknown))}"
    both = [fact.label.strip() for fact in facts if fact.unknown == SIDES]
    if both:
        yield f"known on neither side: {', '.join(dict.fromkeys(both))}"
    if any(found.axis is Axis.VERSION for found in differences):
        yield f"Triton {ours.triton or '?'} and {theirs.triton or '?'} may print one program differently"

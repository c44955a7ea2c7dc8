"""Comparison of two kernels: every fact, every region at every stage, and which component made them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundPlacement
from artifact_inspector.comparison.fact_pair import SIDES, FactPair, PairSide, State, codes_of
from artifact_inspector.comparison.matching import Axis, Candidate, Difference, find_differences
from artifact_inspector.comparison.sign import Statements, sign_facts
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary import file_facts, finding_facts
from artifact_inspector.vocabulary.fact import Category, Row
from artifact_inspector.vocabulary.names import STEPS, name_regions, step_of
from artifact_inspector.vocabulary.options import OPTIONS, SHARED_OPTIONS
from artifact_inspector.vocabulary.rows import Summary, summarise, verdict_words

ITSELF = "the program itself"


class KernelRegion(NamedTuple):
    """A region at one stage of one kernel."""

    stage: Stage
    region: RegionFacts

    @property
    def rounds(self) -> tuple[RoundPlacement, ...]:
        """The lines of each round."""
        return tuple(located_round.placement for located_round in self.region.rounds)


@dataclass(frozen=True, slots=True)
class StagePair:
    """A region at one stage of both kernels; None if a kernel lacks the stage, or the loop there."""

    step: str
    left: KernelRegion | None
    right: KernelRegion | None
    compared: bool
    """False if one kernel lacks the whole stage, or a verdict is unknown."""

    @property
    def agree(self) -> bool | None:
        """Whether both have the same verdict; None if unknown, as where one may not have changed."""
        regions = [None if side is None else side.region for side in (self.left, self.right)]
        is_same = len({None if region is None else verdict_words(region) for region in regions}) == 1
        is_known = is_same or all(region is None or region.order_changed is not None for region in regions)
        return is_same if self.compared and is_known else None


class VerdictChange(NamedTuple):
    """Where a kernel's verdict first differs from its own previous stage, as far as the two show the same loads."""

    side: PairSide
    """`left` or `right`."""
    step: str
    components: tuple[str, ...]
    """The responsible component, or several candidates if stages in between are missing."""
    before: str
    after: str
    lines: tuple[tuple[int, int], ...]
    """First load and last compute of each round, in the file of the stage."""


class FirstDivergence(NamedTuple):
    """Where the verdicts of two kernels first differ."""

    step: str
    components: tuple[str, ...]
    """The candidates for the cause; `the program itself` if the sources or configurations differ."""
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
    """Its id there; None if that kernel has no such region."""
    right: str | None
    is_principal: bool
    stages: tuple[StagePair, ...]
    first_divergence: FirstDivergence | None
    verdict_changes: tuple[VerdictChange, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two kernels, compared."""

    left: KernelFacts
    right: KernelFacts
    sides: tuple[Candidate, Candidate]
    """The identities of the two."""
    differences: tuple[Difference, ...]
    """The properties in which they are not the same kernel."""
    options: tuple[FactPair, ...]
    facts: tuple[FactPair, ...]
    regions: tuple[RegionPair, ...]
    """The main loop first."""
    notes: tuple[str, ...]
    """What could not be compared."""

    @property
    def is_same(self) -> bool:
        """True if no known fact differs."""
        return not any(fact.differs for fact in self.facts) and not any(
            stage.agree is False for region in self.regions for stage in region.stages
        )

    @property
    def first_divergence(self) -> FirstDivergence | None:
        """Of the first region that differs, the main loop before all others."""
        return next((region.first_divergence for region in self.regions if region.first_divergence is not None), None)


def compare_kernels(
    left: KernelFacts, right: KernelFacts, sides: tuple[Candidate, Candidate] | None = None
) -> Comparison:
    """Compare every fact of two kernels.

    `compare_kernels(a, b)` is the mirror image of `compare_kernels(b, a)`.

    Args:
        sides: the identities of the two, if they are read already.
    """
    our_identity, their_identity = sides or (Candidate(left.artifact), Candidate(right.artifact))
    names = _names(left, right)
    ours, theirs = summarise(left, names[0]), summarise(right, names[1])
    differences = find_differences(our_identity, their_identity)
    statements = {
        file_facts.load_widths.key: (left.widths, right.widths),
        file_facts.store_widths.key: (left.store_widths, right.store_widths),
    }
    facts = compare_rows(ours, theirs, statements)
    return Comparison(
        left,
        right,
        (our_identity, their_identity),
        differences,
        tuple(_options(ours, theirs)),
        facts,
        tuple(_regions(left, right, *names, differences)),
        tuple(_notes(ours, theirs, facts, differences)),
    )


def compare_rows(left: Summary, right: Summary, statements: Statements | None = None) -> tuple[FactPair, ...]:
    """The facts of both, in the order of reports: merged from the left and the right.

    A fact that only one side has differs; a fact of a stage that only one side has is not compared.

    Args:
        statements: if known.
    """
    ours, theirs = {row.key: row for row in left.rows}, {row.key: row for row in right.rows}
    pairs = [
        _compare_fact(ours.get(key), theirs.get(key), left, right) for key in _merge_keys(list(ours), list(theirs))
    ]
    return sign_facts(pairs, left, right, statements)


def _compare_fact(left_row: Row | None, right_row: Row | None, left: Summary, right: Summary) -> FactPair:
    row = left_row or right_row
    assert row is not None
    values = (None if left_row is None else left_row.value, None if right_row is None else right_row.value)
    state, reason = State.SAME, ""
    unknown: tuple[PairSide, ...] = ()
    if left_row is None or right_row is None:
        lacking_summary = right if right_row is None else left
        lacking = PairSide.RIGHT if right_row is None else PairSide.LEFT
        state = State.ONE_SIDED
        if row.step and row.step not in lacking_summary.steps:
            state, reason = State.NOT_COMPARED, f"the {lacking} kernel has no {row.step}"
        elif row.value is None:
            unknown = SIDES
    elif left_row.step != right_row.step:
        state, reason = (State.NOT_COMPARED, f"read at {left_row.step} on the left, at {right_row.step} on the right")
    elif None in values:
        unknown = tuple(side for side, value in zip(SIDES, values, strict=True) if value is None)
    elif values[0] != values[1]:
        state = State.DIFFERENT
        if row.category == Category.FINDINGS and bool(left.options) != bool(right.options):
            lacking = PairSide.RIGHT if left.options else PairSide.LEFT
            state, reason = State.NOT_COMPARED, f"the {lacking} kernel has no metadata"
        elif row.key == finding_facts.findings.key and (reason := _describe_unread_atomics(left, right)):
            ours, theirs = (tuple(sorted(codes_of(value) - {"AI027"})) for value in values)
            state = State.NOT_COMPARED if ours == theirs else State.DIFFERENT
            values = (values[0] or None, values[1] or None) if ours == theirs else (ours, theirs)
    if unknown:
        state = State.NOT_COMPARED
        reason = "unknown" if unknown == SIDES else f"unknown on the {unknown[0]}"
    return FactPair(
        key=row.key,
        category=row.category,
        label=row.label,
        unit=row.unit,
        region=row.region,
        left=values[0],
        right=values[1],
        state=state,
        reason=reason,
        step=row.step,
        unknown=unknown,
    )


def _describe_unread_atomics(left: Summary, right: Summary) -> str:
    """Which side's texts do not show whether an atomic became a compare-and-swap loop; empty if none."""
    unread = [side for side in (left, right) if side.facts.get(file_facts.cas_loops.key, 0) is None]
    lacking = "--sass" if all(step_of(Stage.PTX) in side.steps for side in unread) else "machine code"
    targets = " and ".join(dict.fromkeys(side.target or "a kernel" for side in unread))
    return f"AI027 is unknown on {targets} without {lacking}" if unread else ""


def _merge_keys(ours: list[str], theirs: list[str]) -> list[str]:
    """Keys of both in one order that does not depend on which side is which."""
    orders = [{key: position for position, key in enumerate(keys)} for keys in (ours, theirs)]

    def rank(key: str) -> tuple[float, str]:
        spots = [order[key] for order in orders if key in order]
        return (sum(spots) / len(spots), key)

    return sorted({*ours, *theirs}, key=rank)


def _options(ours: Summary, theirs: Summary) -> Iterator[FactPair]:
    for key in OPTIONS:
        our_value, their_value = ours.options.get(key), theirs.options.get(key)
        if our_value is None and their_value is None:
            continue
        if our_value is None or their_value is None:
            if key not in SHARED_OPTIONS:
                continue  # an option of one back end, or of one version
            state = State.NOT_COMPARED
        else:
            state = State.SAME if our_value == their_value else State.DIFFERENT
        yield FactPair(key, "options", key, "", "", our_value, their_value, state)


def _names(left: KernelFacts, right: KernelFacts) -> tuple[dict[str, str], dict[str, str]]:
    """Region id → name, on both sides; the main loop has the same name in both, whatever its number."""
    ours, theirs = name_regions(left), name_regions(right)
    principal = ours.get(left.principal or ""), theirs.get(right.principal or "")
    if None not in principal and principal[0] != principal[1]:
        ours[left.principal or ""] = theirs[right.principal or ""] = "main"
    return ours, theirs


def _regions(
    left: KernelFacts,
    right: KernelFacts,
    ours: Mapping[str, str],
    theirs: Mapping[str, str],
    differences: tuple[Difference, ...],
) -> Iterator[RegionPair]:
    is_other_program = any(pair.axis in (Axis.SOURCE, Axis.CONFIG) for pair in differences)
    ids = {name: region for region, name in ours.items()}, {name: region for region, name in theirs.items()}
    principal = ours.get(left.principal or ""), theirs.get(right.principal or "")
    names = _merge_keys(list(ids[0]), list(ids[1]))
    for name in sorted(names, key=lambda name: name not in principal):
        pair = _region_pair(left, right, name, ids[0].get(name), ids[1].get(name), name in principal)
        if is_other_program and pair.first_divergence is not None and pair.first_divergence.step == STEPS[0]:
            pair = replace(pair, first_divergence=pair.first_divergence._replace(components=(ITSELF,)))
        yield pair


def _region_pair(
    left: KernelFacts, right: KernelFacts, name: str, ours: str | None, theirs: str | None, is_principal: bool
) -> RegionPair:
    our_sides, their_sides = _sides(left, ours), _sides(right, theirs)
    stages = tuple(
        StagePair(
            step, our_sides.get(step), their_sides.get(step), _compared(step, left, right, our_sides, their_sides)
        )
        for step in STEPS
        if step in our_sides or step in their_sides
    )
    changes = (_verdict_change(PairSide.LEFT, left, our_sides), _verdict_change(PairSide.RIGHT, right, their_sides))
    return RegionPair(
        name, ours, theirs, is_principal, stages, _first_divergence(left, right, stages),
        tuple(change for change in changes if change is not None),
    )  # fmt: skip


def _sides(kernel: KernelFacts, region: str | None) -> dict[str, KernelRegion]:
    regions = {stage: None if region is None else facts.region(region) for stage, facts in kernel.stages.items()}
    return {step_of(stage): KernelRegion(stage, facts) for stage, facts in regions.items() if facts is not None}


def _compared(
    step: str,
    left: KernelFacts,
    right: KernelFacts,
    left_sides: Mapping[str, KernelRegion],
    right_sides: Mapping[str, KernelRegion],
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
    stage_by_step = {stage.step: stage for stage in stages}
    for step in STEPS:
        stage = stage_by_step.get(step)
        agree = step in both if stage is None else stage.agree  # neither has the region: nothing differs
        if stage is not None and agree is False:
            return FirstDivergence(
                step, _components(agreed, step), _phrase(stage.left), _phrase(stage.right), _lines(stage.left),
                _lines(stage.right),
            )  # fmt: skip
        agreed = step if agree else agreed
    return None


def _verdict_change(side: PairSide, kernel: KernelFacts, sides: Mapping[str, KernelRegion]) -> VerdictChange | None:
    previous_step: str | None = None
    for stage in kernel.stages:
        step = step_of(stage)
        side_at_step = sides.get(step)
        verdict = None if side_at_step is None else verdict_words(side_at_step.region)
        if side_at_step is None or verdict is None:
            continue
        if previous_step is not None:
            previous_verdict = verdict_words(sides[previous_step].region)
            is_known = side_at_step.region.order_changed is not None
            if previous_verdict is not None and previous_verdict != verdict and is_known:
                return VerdictChange(
                    side, step, _components(previous_step, step), previous_verdict, verdict, _lines(side_at_step)
                )
        previous_step = step
    return None


def _components(last_agreeing: str | None, step: str) -> tuple[str, ...]:
    """The components between two stages; all before the second if the first is unknown."""
    by_step = {step_of(stage): stage.component for stage in Stage}
    first = 0 if last_agreeing is None else STEPS.index(last_agreeing) + 1
    return tuple(by_step[name] for name in STEPS[first : STEPS.index(step) + 1])


def _phrase(side: KernelRegion | None) -> str:
    return "no such region" if side is None else side.region.phrase


def _lines(side: KernelRegion | None) -> tuple[tuple[int, int], ...]:
    rounds = () if side is None else side.region.rounds
    ends = [(x.first_load, x.last_load, x.first_compute, x.last_compute) for x in rounds]
    lines = [[line for line in of_round if line] for of_round in ends]
    return tuple((min(of_round), max(of_round)) for of_round in lines if of_round)


def _notes(
    ours: Summary, theirs: Summary, facts: tuple[FactPair, ...], differences: tuple[Difference, ...]
) -> Iterator[str]:
    for side, summary, counterpart in ((PairSide.LEFT, ours, theirs), (PairSide.RIGHT, theirs, ours)):
        missing = [step for step in STEPS if step in counterpart.steps and step not in summary.steps]
        if missing:
            yield f"the {side} kernel has no {', '.join(missing)}: facts of these stages are not compared"
        unknown = [fact.label.strip() for fact in facts if fact.unknown == (side,)]
        if unknown:
            yield f"unknown on the {side}: {', '.join(dict.fromkeys(unknown))}"
    both = [fact.label.strip() for fact in facts if fact.unknown == SIDES]
    if both:
        yield f"unknown on both sides: {', '.join(dict.fromkeys(both))}"
    yield from (fact.reason for fact in facts if fact.key == finding_facts.findings.key and "AI027" in fact.reason)
    if any(difference.axis is Axis.VERSION for difference in differences):
        yield f"Triton {ours.triton or '?'} and {theirs.triton or '?'} may print the same program differently"

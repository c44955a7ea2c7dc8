"""The decisive difference of two kernels, as the sentence that an engineer would write: what, where, since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.analysis.access.load_widths import MAX_BYTES, LoadWidth
from artifact_inspector.comparison.cause import lines_of
from artifact_inspector.comparison.consequence import COUNTS, consequence_of, differing_facts, is_minor, rank_of
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.line_changes import count_barriers
from artifact_inspector.comparison.matching import Axis, Difference, Facet
from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.comparison.sign import ENOUGH_WARPS, ON_ACCESS
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import RULES, find_dots, find_findings
from artifact_inspector.model import Consequence, Resource, Stage
from artifact_inspector.model.location import base_name
from artifact_inspector.vocabulary import file_facts, finding_facts, kernel_facts, region_facts
from artifact_inspector.vocabulary.fact import Category, Sign, Unit, Value
from artifact_inspector.vocabulary.names import STEPS, name_regions, step_of
from artifact_inspector.vocabulary.options import SHARED_OPTIONS
from artifact_inspector.vocabulary.rows import fact_of
from artifact_inspector.vocabulary.value_reading import compare_widths, read_matrix, read_matrix_names, read_widths

_FIRST_DIFFERENCE = "first difference in "
_OF_BINARY = (Category.SPILLS, Category.REGISTERS, Category.OCCUPANCY)
"""Categories of facts that the last compiler decides."""
SAME_SHARE = 0.01
"""Relative change of a number of instructions up to which a stage is the same program."""
MAX_ORIGINS = 2
"""Most options, versions and targets in the sentence."""
_FINDINGS_OF_FACTS = {
    Consequence.SPILLS: {"AI007", "AI021"},
    Consequence.ACCESS: ON_ACCESS,
    Consequence.OCCUPANCY: {"AI008"},
}
"""Findings whose lines explain a fact of the kernel as a whole."""
_PIPELINES = (Consequence.DRAIN, Consequence.ASYNCHRONY, Consequence.IN_FLIGHT, Consequence.ORDER)


class Headline(NamedTuple):
    """The decisive fact with its evidence."""

    fact: FactPair
    phrase: str
    """What changed: `the pipeline of loop1 drains every iteration (wait depth 4 → 0)`."""
    source: str | None
    """`matmul.py:81`; None where no line is known."""
    reason: str
    """Why, as the worse kernel's own texts prove it; empty if unknown."""
    origin: str
    """The requested change, and the first stage that differs; empty if unknown."""

    @property
    def sentence(self) -> str:
        """One sentence: direction, change, line, price of this fact, reason, origin."""
        return self.describe("" if self.fact.direction is Sign.NEUTRAL else f"{self.fact.direction.capitalize()}: ")

    def describe(self, lead: str) -> str:
        """The sentence with another lead than the fact's direction."""
        location = "" if self.source is None else f", at {self.source}"
        reason = f", because {self.reason}" if self.reason else ""
        origin = f"; {self.origin}" if self.origin else ""
        price = "" if self.fact.price is None else f", {self.fact.price:.2f}× the time"
        sentence = f"{lead}{self.phrase}{location}{price}{reason}{origin}."
        return sentence[0].upper() + sentence[1:]


class ComparedKernels(NamedTuple):
    """Two kernels with what a sentence about their difference needs."""

    left: KernelFacts | None
    """The old kernel; None for a record."""
    right: KernelFacts
    lines: Mapping[str, int]
    """Region by its name → its line in the source, on the right."""
    differences: Sequence[Difference] = ()
    """In what the two are not the same kernel."""
    first_difference: str = ""
    """The first kind of file that differs."""


def headlines_of_pair(pair: Comparison, first_difference: str = "") -> tuple[Headline, ...]:
    """The headlines of two kernels, the decisive one first; `first_difference` is a kind of file."""
    facts = differing_facts(pair.facts)
    lines = lines_of(pair.right) if facts else {}
    return find_headlines(facts, ComparedKernels(pair.left, pair.right, lines, pair.differences, first_difference))


def find_headlines(facts: Sequence[FactPair], kernels: ComparedKernels) -> tuple[Headline, ...]:
    """The decisive fact, the first worse fact of each other category, the first better fact; empty if all are minor.

    Args:
        facts: facts that differ, the decisive one first.
    """
    signed = [fact for fact in facts if fact.direction is not Sign.NEUTRAL and not is_minor(fact)]
    is_capacity = bool(signed) and signed[0].direction is Sign.BETTER and (signed[0].category == Category.IN_FLIGHT)
    if is_capacity and any(difference.axis is Axis.TARGET for difference in kernels.differences):
        # a capacity of another GPU outweighs no finding
        signed.sort(key=lambda fact: not (fact.direction is Sign.WORSE and fact.category == Category.FINDINGS))
    occupancy = kernels.right.occupancy
    is_known = occupancy is not None and occupancy.blocks is not None
    if occupancy is not None and is_known and not any(fact.category == Category.OCCUPANCY for fact in facts):
        unpaid = {Category.REGISTERS, Category.BOUNDS}  # registers cost by occupancy and spills
        unpaid |= set() if Resource.SHARED in occupancy.limited_by else {Category.SHARED}
        signed = [fact for fact in signed if fact.category not in unpaid or rank_of(fact) < Consequence.OTHER.rank]
    shares = [fact for fact in facts if fact_of(fact.key, fact.region) is kernel_facts.occupancy_share]
    values = [value for share in shares for value in (share.left, share.right)]
    have_enough = bool(values) and all(isinstance(value, int | float) and value > ENOUGH_WARPS for value in values)

    def is_cheap(fact: FactPair) -> tuple[bool, bool]:
        is_size = fact.category == Category.SHARED and consequence_of(fact) is Consequence.OTHER
        return fact.category in COUNTS or (is_size and is_known), have_enough and fact.category == Category.OCCUPANCY

    signed.sort(key=is_cheap)
    if not any(rank_of(fact) < Consequence.ACCESS.rank for fact in signed):
        signed[:0] = filter(None, [_find_other_unit(facts)])
    signed.sort(key=_is_outweighed_by(signed))
    headline_facts = {fact.category: fact for fact in reversed(signed) if fact.direction is Sign.WORSE}
    better = [fact for fact in signed if fact.direction is Sign.BETTER][:1]
    selected = dict.fromkeys((*signed[:1], *(fact for fact in signed if fact in headline_facts.values()), *better))
    return tuple(_make_headline(fact, facts, kernels) for fact in selected)


def _is_outweighed_by(facts: Sequence[FactPair]) -> Callable[[FactPair], bool]:
    """Sorts the fact with the largest price first, if the decisive one has a price too; counts sum up others."""
    factors = {
        id(fact): max(fact.price, 1 / fact.price) for fact in facts if fact.price and fact.category not in COUNTS
    }
    largest = max(factors, key=factors.__getitem__) if facts and id(facts[0]) in factors else None
    return lambda fact: largest is not None and id(fact) != largest


def _find_other_unit(facts: Sequence[FactPair]) -> FactPair | None:
    """The matrix instructions of a loop that another vendor's unit executes: neither better nor worse."""
    matrix = [
        fact
        for fact in facts
        if fact_of(fact.key, fact.region) is region_facts.matrix and None not in (fact.left, fact.right)
    ]
    return next((fact for fact in matrix if read_matrix(fact.left).units != read_matrix(fact.right).units), None)


def _make_headline(fact: FactPair, facts: Sequence[FactPair], kernels: ComparedKernels) -> Headline:
    left, right = kernels.left, kernels.right
    worse, better = (left, right) if fact.direction is Sign.BETTER else (right, left)
    source, reason = None, ""
    if worse is not None:
        source, reason = _find_evidence(fact, worse, better)
        if fact.direction is Sign.BETTER or (better is not None and reason == _find_evidence(fact, better, worse)[1]):
            reason = ""  # it explains the old kernel, or both
    if consequence_of(fact) is Consequence.SPILLS and source is None and fact.direction is Sign.WORSE:
        source, reason = _find_loads_that_spill(facts, right)
    location = None if right.program is None else right.program.location
    if source is None and fact.region in kernels.lines and location is not None:
        source = f"{base_name(location.file)}:{kernels.lines[fact.region]}"
    origin = _describe_origin(kernels.differences, kernels.first_difference)
    if Category(fact.category) in _OF_BINARY and _FIRST_DIFFERENCE in origin:
        origin += _describe_counts(facts, kernels.first_difference)
    return Headline(fact, describe_decisive(fact._replace(price=None), facts), source, reason, origin)


def _find_loads_that_spill(facts: Sequence[FactPair], kernel: KernelFacts) -> tuple[str | None, str]:
    """The loads that became narrower and go through registers instead of asynchronous copies: both take registers."""
    worse = {fact_of(fact.key, fact.region): fact for fact in facts if fact.direction is Sign.WORSE}
    loads, kinds = worse.get(file_facts.load_widths), worse.get(region_facts.pipeline_kind)
    copies = next((fact for fact in facts if fact_of(fact.key, fact.region) is file_facts.copy_widths), None)
    if loads is None or (kinds is None and (copies is None or copies.right is not None)):
        return None, ""
    return _find_evidence(loads, kernel, None)[0], describe_decisive(loads, facts)


def _find_evidence(fact: FactPair, worse: KernelFacts, better: KernelFacts | None) -> tuple[str | None, str]:
    """The line and the reason that the worse kernel gives for a fact."""
    consequence = consequence_of(fact)
    names = name_regions(worse)
    if consequence in _PIPELINES:
        for region, pipeline in worse.pipelines.items():
            if pipeline.unpipelined_reason is not None and fact.region in (names.get(region), region):
                return None, pipeline.unpipelined_reason
    if consequence in (Consequence.MATRIX, Consequence.OPERANDS) and fact.region:
        region_ids = [region for region, name in names.items() if name == fact.region]
        dots = [source for region in region_ids for source in find_dots(worse, region)[2]]
        return (dots[0] if dots else None), ""
    if consequence is Consequence.EXCHANGE and worse.bill is not None:
        role = fact.key.partition(".")[2]
        entry = next((entry for entry in worse.bill.entries if entry.role == role and entry.source), None)
        return (None if entry is None or entry.source is None else str(entry.source)), ""
    if consequence is Consequence.ACCESS:
        access = _find_narrowed(fact, worse)
        if access is not None:
            return str(access.source), next((str(cause.reason) for cause in access.causes), "")
    if fact.category == Category.BARRIERS:
        growth = count_barriers(worse)
        growth.subtract(Counter() if better is None else count_barriers(better))
        return max(growth, key=growth.__getitem__, default=None), ""
    codes = _FINDINGS_OF_FACTS.get(consequence, set()) if not fact.region else set()
    is_finding = fact_of(fact.key, fact.region) in (finding_facts.findings, finding_facts.findings_on_registers)
    if is_finding:
        codes = _codes(fact.left) ^ _codes(fact.right)
    remark = next((finding.remark for finding in find_findings(worse) if finding.code in codes), None)
    source = str(remark.sources[0]) if remark is not None and remark.sources else None
    return source, remark.message if remark is not None and is_finding else ""


def _find_narrowed(fact: FactPair, worse: KernelFacts) -> LoadWidth | None:
    """The statement with the most instructions beyond those of full width, among widths that became more frequent."""
    is_store = fact_of(fact.key, fact.region) is file_facts.store_widths
    known = [one for one in (worse.store_widths if is_store else worse.widths) if one.width is not None and one.source]
    own, other = read_widths(fact.right) or {}, read_widths(fact.left) or {}
    own, other = (other, own) if fact.direction is Sign.BETTER else (own, other)
    grown = {width for width, count in own.items() if count > other.get(width, 0)}
    return max(
        [one for one in known if grown & one.widths.keys()] or known,
        key=lambda one: (sum(n * (1 - width / MAX_BYTES) for width, n in one.widths.items()), -(one.width or 0)),
        default=None,
    )


def _codes(value: Value) -> set[str]:
    return set(value) if isinstance(value, tuple) else set()


def describe_decisive(fact: FactPair, facts: Sequence[FactPair]) -> str:
    """What changed, in the terms of its consequence.

    Args:
        facts: all facts that differ, for figures that belong together.
    """
    definition = fact_of(fact.key, fact.region)
    phrase = ""
    if fact.unknown:
        return describe_values(fact)
    if definition is kernel_facts.spills:
        left, right = value_text(fact.left), value_text(fact.right)
        verb = (
            "spilled to memory" if fact.left and fact.right else "no longer spill," if fact.left else "spill to memory,"
        )
        phrase = f"registers {verb} {left} → {right} B per thread"
    elif definition in (region_facts.matrix, region_facts.fused, file_facts.matrix_instructions):
        phrase = _describe_matrix(fact)
    elif definition is region_facts.pipeline_depth or definition is region_facts.pipeline_iterations:
        phrase = _describe_depth(fact)
    elif definition is region_facts.element_accesses:
        phrase = describe_values(fact._replace(left=fact.left or 0, right=fact.right or 0))
    elif definition is region_facts.pipeline_kind:
        phrase = _describe_kind(fact)
    elif definition is kernel_facts.compute_partitions:
        phrase = f"{value_text(fact.left)} → {value_text(fact.right)} partitions multiply the whole tile"
    elif definition is kernel_facts.blocks:
        phrase = _describe_blocks(fact, facts)
    elif definition is finding_facts.findings or definition is finding_facts.findings_on_registers:
        phrase = _describe_codes(fact)
    elif consequence_of(fact) is Consequence.ACCESS:
        phrase = _describe_widths(fact, facts)
    elif consequence_of(fact) is Consequence.EXCHANGE:
        phrase = _describe_exchange(fact, facts)
    return phrase or describe_values(fact)


def describe_values(fact: FactPair) -> str:
    """One difference: `loop1: wait depth 4 → 0 left in flight`."""
    prefix = f"{fact.region}: " if fact.region else ""
    unit = f" {fact.unit}" if fact.unit and fact.unit != Unit.IN_CODE else ""
    reason = f" ({fact.reason})" if fact.reason else ""
    price = "" if fact.price is None else f" ({fact.price:.2f}× time)"
    return f"{prefix}{fact.label.strip()} {value_text(fact.left)} → {value_text(fact.right)}{unit}{reason}{price}"


def value_text(value: Value) -> str:
    """A value as text; a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _describe_matrix(fact: FactPair) -> str:
    scope = f"the dots of {fact.region}" if fact.region else "the dots"
    ending = " and run as multiply-adds" if fact.region else ""
    is_multiply_add = fact_of(fact.key, fact.region) is region_facts.fused
    if (not fact.left) != (not fact.right):
        is_lost = bool(fact.right) if is_multiply_add else bool(fact.left)
        if is_lost:
            return f"{scope} lost the matrix unit{ending}"
        return f"{scope} use the matrix unit"
    left, right = read_matrix(fact.left), read_matrix(fact.right)
    if left.units != right.units:
        names = [" and ".join(read_matrix_names(side)) for side in (fact.left, fact.right)]
        return f"{scope} use {names[1]} instead of {names[0]}"
    if left.operand_bits != right.operand_bits:
        return f"{scope} multiply {right.operand_bits}-bit instead of {left.operand_bits}-bit operands"
    return ""


def _describe_depth(fact: FactPair) -> str:
    values = f"({fact.title} {value_text(fact.left or 0)} → {value_text(fact.right or 0)})"
    if not fact.right:
        return f"the pipeline of {fact.region} drains every iteration {values}"
    if not fact.left:
        return f"the pipeline of {fact.region} no longer drains every iteration {values}"
    distance = "further" if fact.direction is Sign.BETTER else "less far"
    return f"the pipeline of {fact.region} runs {distance} ahead {values}"


def _describe_kind(fact: FactPair) -> str:
    loads = f"the loads of {fact.region}"
    if None in (fact.left, fact.right):
        return f"{loads} run ahead by {fact.right}" if fact.right else f"{loads} no longer run ahead by {fact.left}"
    return f"{loads} run ahead by {fact.right} instead of {fact.left}"


def _describe_widths(fact: FactPair, facts: Sequence[FactPair]) -> str:
    """Loads and copies together, since a pass turns one into the other."""
    loads = (file_facts.load_widths, file_facts.copy_widths)
    same = [one for one in facts if fact_of(one.key, one.region) in loads] if "loads" in fact.category else [fact]
    left, right = read_widths(*(one.left for one in same)), read_widths(*(one.right for one in same))
    means = None if left is None or right is None else compare_widths(left, right)
    if means is None:
        return ""
    change = "wider" if fact.direction is Sign.BETTER else "narrower"
    if (means[1] > means[0]) is not (fact.direction is Sign.BETTER):
        return ""
    values = f"{value_text(fact.left)} → {value_text(fact.right)}"
    return f"{fact.title} are {change}, {means[0]:.3g} → {means[1]:.3g} B per thread on average ({values})"


def _describe_blocks(fact: FactPair, facts: Sequence[FactPair]) -> str:
    resources = [
        f"{other.title} {value_text(other.left)} → {value_text(other.right)}"
        for other in facts
        if fact_of(other.key, other.region) in (kernel_facts.registers, kernel_facts.shared)
        and other.direction is fact.direction
    ]
    if 0 in (fact.left, fact.right):
        phrase = "blocks fit on a multiprocessor again" if fact.right else "no block fits on a multiprocessor any more"
        return f"{phrase} ({', '.join((f'{value_text(fact.left)} → {value_text(fact.right)}', *resources))})"
    cause = f" ({', '.join(resources)})" if resources else ""
    return f"{value_text(fact.left)} → {value_text(fact.right)} blocks per multiprocessor{cause}"


def _describe_exchange(fact: FactPair, facts: Sequence[FactPair]) -> str:
    counts = (file_facts.barriers, file_facts.shared_loads, file_facts.shared_stores)
    figures = [
        f"{other.title} {value_text(other.left)} → {value_text(other.right)}"
        for other in facts
        if fact_of(other.key, other.region) in counts and other.direction is fact.direction
    ]
    figures = [f"{value_text(fact.left or 0)} → {value_text(fact.right or 0)} B of shared memory", *figures]
    change = "new " if not fact.left else "" if fact.right else "no more "
    return f"{change}{fact.title}: {', '.join(figures)}"


def _describe_codes(fact: FactPair) -> str:
    names = {rule.code: rule.name for rule in RULES}
    codes = sorted(_codes(fact.right) ^ _codes(fact.left))
    listed = ", ".join(f"{code} {names.get(code, '')}".strip() for code in codes)
    return f"{'new findings' if fact.direction is Sign.WORSE else 'findings gone'}: {listed}"


def _describe_counts(facts: Sequence[FactPair], first_difference: str) -> str:
    """From which later stage on the instructions differ in number: earlier differences are of attributes and names."""
    values = {fact.key: (fact.left, fact.right) for fact in facts}
    for stage in Stage:
        left, right = values.get(file_facts.instructions.key.format(step=step_of(stage)), (None, None))
        if isinstance(left, int) and isinstance(right, int) and abs(right - left) > SAME_SHARE * max(left, right):
            is_later = STEPS.index(step_of(stage)) > STEPS.index(first_difference)
            return f", in the number of instructions from {step_of(stage)} on ({stage.component})" if is_later else ""
    return ""


def _describe_origin(differences: Sequence[Difference], first_difference: str) -> str:
    is_release = any(difference.axis is Axis.VERSION for difference in differences)
    requested = [
        f"{difference.facet} {value_text(difference.left)} → {value_text(difference.right)}"
        for difference in differences
        if difference.axis in (Axis.VERSION, Axis.TARGET, Axis.CONFIG)
        and difference.facet != Facet.TILES
        and not (is_release and difference.axis is Axis.CONFIG and difference.facet not in SHARED_OPTIONS)
        and None not in (difference.left, difference.right)
    ][:MAX_ORIGINS]
    axes = {difference.axis for difference in differences}
    if Axis.TARGET in axes or (Axis.CONFIG in axes and Axis.VERSION not in axes):
        first_difference = ""  # the request explains it
    stage = next((stage for stage in reversed(Stage) if step_of(stage) == first_difference), None)
    texts = [f"{_FIRST_DIFFERENCE}{first_difference} ({stage.component})"] if stage is not None else []
    return ", ".join([*requested, *texts])

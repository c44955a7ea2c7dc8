"""The decisive difference of two kernels, as the sentence that an engineer would write: what, where, since when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.analysis.access.load_widths import MAX_BYTES, LoadWidth
from artifact_inspector.comparison.cause import lines_of
from artifact_inspector.comparison.consequence import (
    COUNTS,
    consequence_of,
    differing_facts,
    is_minor,
    is_small_spill,
    rank_of,
)
from artifact_inspector.comparison.decisive_phrases import describe_decisive, is_noun, value_text
from artifact_inspector.comparison.fact_pair import FactPair, codes_of
from artifact_inspector.comparison.line_changes import KINDS, count_lines
from artifact_inspector.comparison.matching import Axis, Difference, Facet
from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.comparison.sign import ENOUGH_WARPS, ON_ACCESS
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import Remark, describe_region, find_dots, find_findings
from artifact_inspector.model import Consequence, Resource, Stage
from artifact_inspector.model.location import base_name
from artifact_inspector.model.region import RegionId
from artifact_inspector.model.tile import Tile
from artifact_inspector.vocabulary import file_facts, finding_facts, iteration_facts, kernel_facts, region_facts
from artifact_inspector.vocabulary.fact import Category, Sign
from artifact_inspector.vocabulary.names import STEPS, is_loop_name, name_regions, step_of
from artifact_inspector.vocabulary.options import SHARED_OPTIONS
from artifact_inspector.vocabulary.rows import fact_of, figure_of
from artifact_inspector.vocabulary.value_reading import MINOR_SHARE, read_matrix, read_widths

_FIRST_DIFFERENCE = "instructions differ from "
_OF_BINARY = (Category.SPILLS, Category.REGISTERS, Category.OCCUPANCY)
"""Categories of facts that the last compiler decides; releases may print the same TTIR differently."""
SAME_SHARE = 0.01
"""Relative change of a number of instructions up to which a stage is the same program."""
MAX_ORIGINS = 2
"""Most options, versions and targets in the sentence."""
_FINDINGS_OF_FACTS = {
    Consequence.SPILLS: {"AI007", "AI021"},
    Consequence.ACCESS: ON_ACCESS,
    Consequence.OCCUPANCY: {"AI008"},
    Consequence.ATOMICS: {"AI027"},
}
"""Findings whose lines explain a fact of the kernel as a whole."""
_PIPELINES = (Consequence.DRAIN, Consequence.ASYNCHRONY, Consequence.IN_FLIGHT, Consequence.ORDER)


class Headline(NamedTuple):
    """The decisive fact with its evidence."""

    fact: FactPair
    phrase: str
    """What changed: `the pipeline of the loop at matmul.py:81 drains every iteration (wait depth 4 → 0)`."""
    source: str | None
    """`matmul.py:81`; None where no line is known."""
    reason: str
    """Why, as the worse kernel's own texts prove it; empty if unknown."""
    origin: str
    """The requested change, and the first stage that differs; empty if unknown."""

    @property
    def sentence(self) -> str:
        """One sentence: direction, change, line, price of this fact, reason, origin."""
        has_direction = self.fact.direction is not Sign.NEUTRAL and not self.fact.unknown
        return self.describe(f"{self.fact.direction.capitalize()}: " if has_direction else "")

    @property
    def contrast(self) -> str:
        """`despite more barriers`, `although the dots use …`: the word before the phrase."""
        return "despite" if is_noun(self.phrase) else "although"

    def as_remedy(self, change: str, ratio: float | None = None) -> str:
        """What a change that was compiled does, with the predicted times' ratio if it is known."""
        basis = "compiled, no time predicted" if ratio is None else f"{ratio:.2f}× the predicted time"
        return f"Try {change} ({basis}): {self.phrase}."

    def describe(self, lead: str, ratio: float | None = None, standing: str = "") -> str:
        """The sentence with another lead than the fact's direction, and the predicted times' ratio if it is known."""
        location = "" if self.source is None or self.source in self.phrase else f", at {self.source}"
        reason = f", because {self.reason}" if self.reason else ""
        origin = f"; {self.origin}" if self.origin else ""
        price = "" if self.fact.price is None else f", {self.fact.price:.2f}× the time"
        if ratio is not None:
            share = "" if self.fact.price is None else f" ({self.fact.price:.2f}× by this fact)"
            price = f", {ratio:.2f}× the predicted time{share}{standing}"
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
    have_enough = have_enough and not _has_other_bytes(facts, kernels.right)

    scratch = (iteration_facts.scratch_loads, iteration_facts.scratch_stores)
    has_scratch = any(is_loop_name(fact.region) and fact_of(fact.key, fact.region) in scratch for fact in facts)

    def is_cheap(fact: FactPair) -> tuple[bool, bool]:
        is_size = is_known and fact.category == Category.SHARED and consequence_of(fact) is Consequence.OTHER
        is_count = fact.category in COUNTS and consequence_of(fact) is not Consequence.EXCHANGE
        is_cheap_spill = is_small_spill(fact) and not has_scratch  # outside of loops
        return is_count or is_size or is_cheap_spill, have_enough and fact.category == Category.OCCUPANCY

    signed.sort(key=is_cheap)
    if not any(rank_of(fact) < Consequence.ACCESS.rank for fact in signed):
        signed[:0] = filter(None, [_find_other_unit(facts)])
    signed.sort(key=_is_outweighed_by(signed))
    signed.sort(key=_is_less_than_bytes(signed))
    headline_facts = {fact.category: fact for fact in reversed(signed) if fact.direction is Sign.WORSE}
    better = [fact for fact in signed if fact.direction is Sign.BETTER][:1]
    selected = dict.fromkeys((*signed[:1], *(fact for fact in signed if fact in headline_facts.values()), *better))
    return tuple(_make_headline(fact, facts, kernels) for fact in selected)


def _is_outweighed_by(facts: Sequence[FactPair]) -> Callable[[FactPair], bool]:
    """Sorts the fact with the largest price first, if the decisive one has a price too; counts sum up others."""
    if facts and consequence_of(facts[0]) is Consequence.MATRIX and facts[0].direction is Sign.WORSE:
        # whatever the price of the unit or of its operands' width: registers and occupancy follow from them
        return lambda _fact: False
    factors = {
        id(fact): max(fact.price, 1 / fact.price) for fact in facts if fact.price and fact.category not in COUNTS
    }
    largest = max(factors, key=factors.__getitem__) if facts and id(facts[0]) in factors else None
    return lambda fact: largest is not None and id(fact) != largest


def _has_other_bytes(facts: Sequence[FactPair], kernel: KernelFacts) -> bool:
    """Whether another number of blocks, with as many bytes in flight each, has other bytes in flight together."""
    definitions = {fact_of(fact.key, fact.region): fact for fact in facts}
    blocks, bytes_per_block = definitions.get(kernel_facts.blocks), figure_of(region_facts.bytes_in_flight, kernel)
    others = [fact for fact in facts if fact.category == Category.IN_FLIGHT and fact.direction is not Sign.NEUTRAL]
    is_equal = not others and isinstance(bytes_per_block, int | float) and bytes_per_block > 0
    return is_equal and blocks is not None and blocks.direction is not Sign.NEUTRAL


def _is_less_than_bytes(facts: Sequence[FactPair]) -> Callable[[FactPair], bool]:
    """Sorts bytes in flight first, if those of all blocks together change against the number of blocks that decides.

    More blocks serve to have more bytes in flight.
    """
    blocks, loads = (
        next((fact for fact in facts if fact_of(fact.key, fact.region) is definition), None)
        for definition in (kernel_facts.blocks, region_facts.bytes_in_flight)
    )
    is_lead = False
    if blocks is not None and loads is not None and facts[0].category == Category.OCCUPANCY and facts[0].price is None:
        left, right = (
            b * n if isinstance(b, int) and isinstance(n, int) else 0
            for b, n in zip((blocks.left, blocks.right), (loads.left, loads.right), strict=True)
        )
        change = Sign.BETTER if right > left else Sign.WORSE
        is_lead = loads.direction is change is not facts[0].direction and abs(right - left) > MINOR_SHARE * max(
            left, right
        )
    return lambda fact: is_lead and fact is not loads


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
    worse, better = (left, right) if fact.direction is Sign.BETTER else (None if fact.unknown else right, left)
    source, reason = None, ""
    if worse is not None:
        source, reason = _find_evidence(fact, worse, better)
        if fact.direction is Sign.BETTER or (better is not None and reason == _find_evidence(fact, better, worse)[1]):
            reason = ""  # it explains the old kernel, or both
    if consequence_of(fact) is Consequence.SPILLS and source is None and worse is not None:
        source, reason = _find_loads_that_spill(facts, right) if worse is right else (None, "")
        source = source or _find_largest_tile(worse)
    loop = _locate_region(fact.region, kernels)
    origin = _describe_origin(kernels.differences, kernels.first_difference)
    is_late = Category(fact.category) in _OF_BINARY or kernels.first_difference == STEPS[0]
    if is_late and _FIRST_DIFFERENCE in origin:
        origin += _describe_counts(facts, kernels.first_difference)
    elif _FIRST_DIFFERENCE in origin:
        origin += _describe_first_count(fact, kernels)
    has_loops = any(map(is_loop_name, kernels.lines))
    loop_place = loop if source in (None, loop) or loop is None else f"line {kernels.lines[fact.region]}"
    phrase = describe_decisive(
        fact._replace(price=None), facts, _name_region(fact.region, loop_place) if has_loops else ""
    )
    if reason and fact.category == Category.FINDINGS:
        phrase, reason = f"{reason} ({phrase})", ""
    return Headline(fact, phrase, source or loop, reason, origin)


def _locate_region(region: str, kernels: ComparedKernels) -> str | None:
    """`matmul.py:81`; None if no line is known."""
    file = _file_of(kernels.right)
    return f"{file}:{kernels.lines[region]}" if file and region in kernels.lines else None


def _file_of(kernel: KernelFacts) -> str:
    """`matmul.py`; empty if unknown."""
    location = None if kernel.program is None else kernel.program.location
    return "" if location is None else base_name(location.file)


def _name_region(region: str, loop_place: str | None) -> str:
    """A region in a sentence: `the loop at matmul.py:81`; empty for a kernel as a whole."""
    if not is_loop_name(region):
        return "code outside of loops" if region else ""
    return region if loop_place is None else f"the loop at {loop_place}"


def _find_loads_that_spill(facts: Sequence[FactPair], kernel: KernelFacts) -> tuple[str | None, str]:
    """The loads that became narrower and go through registers instead of asynchronous copies: both take registers."""
    worse = {fact_of(fact.key, fact.region): fact for fact in facts if fact.direction is Sign.WORSE}
    loads, kinds = worse.get(file_facts.load_widths), worse.get(region_facts.pipeline_kind)
    copies = next((fact for fact in facts if fact_of(fact.key, fact.region) is file_facts.copy_widths), None)
    if loads is None or (kinds is None and (copies is None or copies.right is not None)):
        return None, ""
    return _find_evidence(loads, kernel, None)[0], describe_decisive(loads, facts, loads.region)


def _find_largest_tile(kernel: KernelFacts) -> str | None:
    """The statement that takes most registers: the last dot of the main loop, else the load of most bytes."""
    dots = find_dots(kernel, kernel.principal)[2] if kernel.principal else ()
    loads = [load for load in kernel.widths if load.source]
    largest = max(loads, key=lambda load: sum(width * n for width, n in load.widths.items()), default=None)
    return dots[-1] if dots else None if largest is None else str(largest.source)


def _find_evidence(fact: FactPair, worse: KernelFacts, better: KernelFacts | None) -> tuple[str | None, str]:
    """The line and the reason that the worse kernel gives for a fact."""
    consequence = consequence_of(fact)
    names = name_regions(worse)
    definition = fact_of(fact.key, fact.region)
    if definition is not None and definition in KINDS:
        file = f"{_file_of(worse)}:"
        sides = [side for side in (worse, better) if side is not None]
        ids = [{name: region for region, name in name_regions(side).items()}.get(fact.region) for side in sides]
        if fact.region and None in ids:
            return None, ""
        counts = [count_lines(*side, definition) for side in zip(sides, ids, strict=True)]
        if better is None and len(counts[0]) > 1 and fact.left:
            return None, ""  # a record has no lines: which of them are new is unknown
        counts[0].subtract(*counts[1:])
        growth = +counts[0]
        return max(sorted(growth), key=lambda source: (source.startswith(file), growth[source]), default=None), ""
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
    is_finding = definition in (finding_facts.findings, finding_facts.findings_on_registers)
    codes = set() if fact.region else _FINDINGS_OF_FACTS.get(consequence, set())
    codes = set(codes_of(fact.left) ^ codes_of(fact.right)) if is_finding else codes
    remark = next((finding.remark for finding in find_findings(worse) if finding.code in codes), None)
    source = str(remark.sources[0]) if remark is not None and remark.sources else None
    return source, _describe_remark(remark, worse) if remark is not None and is_finding else ""


def _describe_remark(remark: Remark, kernel: KernelFacts) -> str:
    """Its first sentence, with the regions in words: `in the loop at line 96, the pipeline drains`."""
    region_phrases = {}
    for region in name_regions(kernel):
        region_id, phrase = RegionId.parse(region), describe_region(region)
        region_phrases[region] = region_phrases[phrase] = (
            f"the loop at line {region_id.position}" if region_id.is_line else phrase
        )
    sentence = remark.message.partition(". ")[0].removesuffix(".")
    ids, _, text = sentence.partition(": ")
    named = [region_phrases.get(one, "") for one in ids.split(", ")]
    return f"in {' and '.join(named)}, {text}" if text and all(named) else sentence


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


def _describe_counts(facts: Sequence[FactPair], first_difference: str) -> str:
    """From which later stage on the instructions differ in number: earlier differences are of attributes and names."""
    values = {fact.key: (fact.left, fact.right) for fact in facts}
    for stage in Stage:
        left, right = values.get(file_facts.instructions.key.format(step=step_of(stage)), (None, None))
        if isinstance(left, int) and isinstance(right, int) and abs(right - left) > SAME_SHARE * max(left, right):
            is_later = STEPS.index(step_of(stage)) > STEPS.index(first_difference)
            stage_text = f"{_format_step(step_of(stage))} on ({stage.component})"
            return f", the number of instructions from {stage_text}" if is_later else ""
    return ""


def _describe_first_count(fact: FactPair, kernels: ComparedKernels) -> str:
    """From which later stage on a count of the file differs, as `, barriers from LLIR on`."""
    definition = fact_of(fact.key, fact.region)
    kind = None if fact.region or definition is None else KINDS.get(definition)
    for stage in Stage:
        sides = [None if side is None else side.stages.get(stage) for side in (kernels.left, kernels.right)]
        counts = [None if side is None or kind is None else side.counts[kind.count_name] for side in sides]
        if None not in counts and counts[0] != counts[1]:
            is_later = STEPS.index(step_of(stage)) > STEPS.index(kernels.first_difference)
            return f", {fact.title} from {_format_step(step_of(stage))} on ({stage.component})" if is_later else ""
    return ""


def _format_step(step: str) -> str:
    return step if step == step_of(Stage.PTX) else step.upper()


def _describe_origin(differences: Sequence[Difference], first_difference: str) -> str:
    is_release = any(difference.axis is Axis.VERSION for difference in differences)
    requested = [
        _describe_request(difference)
        for difference in differences
        if difference.axis in (Axis.VERSION, Axis.TARGET, Axis.CONFIG)
        and not (is_release and difference.axis is Axis.CONFIG and difference.facet not in SHARED_OPTIONS)
        and None not in (difference.left, difference.right)
    ]
    requested = list(filter(None, requested))[:MAX_ORIGINS]
    axes = {difference.axis for difference in differences}
    if Axis.TARGET in axes or (Axis.CONFIG in axes and Axis.VERSION not in axes):
        first_difference = ""  # the request explains it
    stage = next((stage for stage in reversed(Stage) if step_of(stage) == first_difference), None)
    texts = [f"{_FIRST_DIFFERENCE}{_format_step(first_difference)} on ({stage.component})"] if stage is not None else []
    return ": ".join(filter(None, (", ".join(requested), *texts)))


def _describe_request(difference: Difference) -> str:
    """`num_stages 3 → 1`; of tiles, the first one that differs, dots before others; empty if they are other ones."""
    sides = difference.left, difference.right
    if difference.facet != Facet.TILES:
        return f"{difference.facet} {value_text(sides[0])} → {value_text(sides[1])}"
    tiles = [[Tile(one) for one in side] for side in sides if isinstance(side, tuple)]
    if len({len(side) for side in tiles}) != 1:
        return ""
    pairs = sorted(zip(*tiles, strict=True), key=lambda pair: not pair[0].is_dot)
    return next((f"tiles {ours} → {theirs}" for ours, theirs in pairs if ours != theirs), "")

"""What changed in one fact of two kernels, in the words of an engineer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artifact_inspector.comparison.consequence import EXCHANGES, consequence_of
from artifact_inspector.comparison.fact_pair import FactPair, codes_of
from artifact_inspector.findings import RULES
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary import file_facts, finding_facts, iteration_facts, kernel_facts, region_facts
from artifact_inspector.vocabulary.fact import Category, Sign, Unit, Value
from artifact_inspector.vocabulary.rows import fact_of
from artifact_inspector.vocabulary.value_reading import compare_widths, read_matrix, read_matrix_names, read_widths

_NOUNS = ("more ", "fewer ", "less ", "higher ", "lower ", "new ", "no more ", "larger ", "smaller ")


def is_noun(words: str) -> bool:
    """Whether what `describe_decisive` returned has no verb: an amount, `9 → 8 blocks per multiprocessor`."""
    return words.startswith(_NOUNS) or (words[:1].isdigit() and " → " in words[:8])


def describe_decisive(fact: FactPair, facts: Sequence[FactPair], region: str) -> str:
    """What changed, in the terms of its consequence.

    Args:
        facts: all facts that differ, for figures that belong together.
        region: how to name the fact's.
    """
    definition = fact_of(fact.key, fact.region)
    named = fact._replace(region=region)
    describe = None if definition is None else _PHRASES.get(definition.key)
    phrase = ""
    if describe is not None and not fact.unknown:
        phrase = describe(named, facts)
    elif consequence_of(fact) is Consequence.ACCESS:
        phrase = _describe_widths(fact, facts)
    elif fact.key in EXCHANGES and consequence_of(fact) is Consequence.EXCHANGE:
        phrase = _describe_exchange(fact, facts)
    if phrase:
        return phrase
    return f"{_describe_amount(named) or describe_values(named._replace(region=''))}{f' in {region}' if region else ''}"


def _describe_amount(fact: FactPair) -> str:
    """`more barriers (5 → 9)`; empty for what is no amount."""
    left, right = (0 if value is None and not fact.unknown else value for value in (fact.left, fact.right))
    if isinstance(left, str | tuple | bool | None) or isinstance(right, str | tuple | bool | None):
        return ""
    subject, _, bound = fact.title.partition(", ")
    words = ("less", "more") if fact.category == Category.SHARED else ("fewer", "more")
    if fact.unit == Unit.PERCENT:
        words = ("less", "more") if subject.startswith("compute") else ("lower", "higher")
    elif fact.category == Category.SHARED and fact.key != kernel_facts.shared.key:
        subject = f"shared memory for the {subject}"
    values = f"{value_text(left)} → {value_text(right)}{'' if fact.unit == Unit.IN_CODE else f' {fact.unit}'}".rstrip()
    return f"{words[right > left]} {subject} ({f'{bound} {values}'.strip()})"


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


def _describe_spills(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    values = f"{value_text(fact.left)} → {value_text(fact.right)} B per thread"
    if fact.left and fact.right:
        return f"{'fewer' if fact.direction is Sign.BETTER else 'more'} registers spill to memory ({values})"
    return f"registers {'no longer spill' if fact.left else 'spill to memory'}, {values}"


def _describe_partitions(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    return f"{value_text(fact.left)} → {value_text(fact.right)} partitions multiply the whole tile"


def _describe_fused(fact: FactPair, facts: Sequence[FactPair]) -> str:
    """Multiply-adds on the right are matrix instructions on the left."""
    return _describe_matrix(fact._replace(left=fact.right, right=fact.left), facts)


def _describe_matrix(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    scope = f"the dots of {fact.region}" if fact.region else "the dots"
    if fact.left and not fact.right:
        return f"{scope} lost the matrix unit{' and run as multiply-adds' if fact.region else ''}"
    if fact.right and not fact.left:
        return f"{scope} use the matrix unit"
    left, right = read_matrix(fact.left), read_matrix(fact.right)
    if left.units != right.units:
        names = [" and ".join(read_matrix_names(side)) for side in (fact.left, fact.right)]
        return f"{scope} use {names[1]} instead of {names[0]}"
    if left.operand_bits != right.operand_bits:
        return f"{scope} multiply {right.operand_bits}-bit instead of {left.operand_bits}-bit operands"
    return ""


def _describe_depth(fact: FactPair, facts: Sequence[FactPair]) -> str:
    values = f"({fact.title} {value_text(fact.left or 0)} → {value_text(fact.right or 0)})"
    loop = fact.key.partition(".")[0]
    kinds = [one for one in facts if one.key == f"{loop}.{region_facts.pipeline_kind.key}"]
    if kinds and None in (kinds[0].left, kinds[0].right):
        change = "is no longer pipelined" if kinds[0].right is None else "is pipelined now"
        return f"{fact.region} {change}: {kinds[0].left or kinds[0].right} {values}"
    if not fact.right:
        return f"the pipeline of {fact.region} drains every iteration {values}"
    if not fact.left:
        return f"the pipeline of {fact.region} no longer drains every iteration {values}"
    distance = "further" if fact.direction is Sign.BETTER else "less far"
    return f"the pipeline of {fact.region} runs {distance} ahead {values}"


def _describe_bytes(fact: FactPair, facts: Sequence[FactPair]) -> str:
    """With the order of loads and computes in the last text, if that differs too."""
    place = f" in {fact.region}" if fact.region else ""
    orders = [one for one in facts if one.category == Category.VERDICT and fact.key.startswith(f"{one.region}.")]
    orders = [one for one in orders if None not in (one.left, one.right)]
    order = f", since {_describe_order(orders[-1])}" if orders else ""
    return f"{_describe_amount(fact)}{place}{order}"


def _describe_cas_loops(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    values = f"{value_text(fact.left or 0)} → {value_text(fact.right or 0)} in the code"
    if fact.left and fact.right:
        return ""
    change = "native atomics became compare-and-swap loops" if fact.right else "compare-and-swap loops became native"
    return f"{change}, {values}" if None not in (fact.left, fact.right) else ""


def _describe_kind(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    if fact.right is None:
        return f"{fact.region} is no longer pipelined by {fact.left}"
    return f"{fact.region} is pipelined by {fact.right}{f' instead of {fact.left}' if fact.left else ''}"


def _describe_widths(fact: FactPair, facts: Sequence[FactPair]) -> str:
    """Loads and copies together, since a pass turns one into the other."""
    loads = (file_facts.load_widths, file_facts.copy_widths)
    same = [one for one in facts if fact_of(one.key, one.region) in loads] if "loads" in fact.category else [fact]
    left, right = read_widths(*(one.left for one in same)), read_widths(*(one.right for one in same))
    means = None if left is None or right is None else compare_widths(left, right)
    if means is None or means[0] == means[1]:
        return ""
    change = "wider" if fact.direction is Sign.BETTER else "narrower"
    if (means[1] > means[0]) is not (fact.direction is Sign.BETTER):
        return ""
    changed = [one for one in same if one.differs]
    values = ", ".join(
        f"{f'{one.title} ' if len(changed) > 1 else ''}{_list_widths(one.left)} → {_list_widths(one.right)}"
        for one in changed
    )
    return f"{fact.title} are {change}, {means[0]:.3g} → {means[1]:.3g} B per thread on average ({values})"


def _list_widths(value: Value) -> str:
    """`32×16 B + 256×2 B`."""
    widths = read_widths(value) or {}
    return " + ".join(f"{count:g}×{width} B" for width, count in widths.items()) or "none"


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
    subjects = (file_facts, iteration_facts)
    counts = [count for of in subjects for count in (of.barriers, of.shared_loads, of.shared_stores)]
    figures = [
        f"{other.title} {value_text(other.left or 0)} → {value_text(other.right or 0)} {other.unit}".removesuffix(
            Unit.IN_CODE
        ).rstrip()
        for other in facts
        if fact_of(other.key, other.region) in counts and other.direction is fact.direction
    ]
    figures = [f"{value_text(fact.left or 0)} → {value_text(fact.right or 0)} B of shared memory", *figures]
    left, right = (value if isinstance(value, int) else 0 for value in (fact.left, fact.right))
    change = "new" if not left else "no more" if not right else "larger" if right > left else "smaller"
    return f"{change} {fact.title}: {', '.join(figures)}"


def _describe_codes(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    names = {rule.code: rule.name for rule in RULES}
    codes = sorted(codes_of(fact.right) ^ codes_of(fact.left))
    listed = ", ".join(f"{code} {names.get(code, '')}".strip() for code in codes)
    noun = "finding" if len(codes) == 1 else "findings"
    return f"{f'new {noun}' if fact.direction is Sign.WORSE else f'{noun} gone'}: {listed}"


def _describe_verdict(fact: FactPair, _facts: Sequence[FactPair]) -> str:
    return f"{_describe_order(fact)}{f' in {fact.region}' if fact.region else ''}"


def _describe_order(fact: FactPair) -> str:
    return f"loads and computes are {value_text(fact.right)} instead of {value_text(fact.left)}"


_PHRASES: dict[str, Callable[[FactPair, Sequence[FactPair]], str]] = {
    kernel_facts.spills.key: _describe_spills,
    kernel_facts.blocks.key: _describe_blocks,
    kernel_facts.compute_partitions.key: _describe_partitions,
    file_facts.cas_loops.key: _describe_cas_loops,
    region_facts.matrix.key: _describe_matrix,
    region_facts.fused.key: _describe_fused,
    file_facts.matrix_instructions.key: _describe_matrix,
    region_facts.pipeline_depth.key: _describe_depth,
    region_facts.pipeline_iterations.key: _describe_depth,
    region_facts.pipeline_buffers.key: _describe_depth,
    region_facts.pipeline_kind.key: _describe_kind,
    region_facts.verdict.key: _describe_verdict,
    region_facts.bytes_in_flight.key: _describe_bytes,
    finding_facts.findings.key: _describe_codes,
    finding_facts.findings_on_registers.key: _describe_codes,
}
"""Key of a fact with a phrase of its own → what writes it; empty for one that its values describe."""

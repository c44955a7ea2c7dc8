"""Prices of facts: the predicted time of a launch, re-costed with one fact put back.

The kernel that has more of something (spills, barriers, instructions …) is costed again with as much of it as the other
one has. Everything else stays. Facts depend on each other, so their prices do not multiply to that of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifact_inspector.comparison.consequence import consequence_of
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.diagnosis import counterfactuals
from artifact_inspector.diagnosis.counterfactuals import Counterfactual
from artifact_inspector.diagnosis.launch_model import LaunchModel
from artifact_inspector.model import Consequence
from artifact_inspector.vocabulary import file_facts, kernel_facts, region_facts
from artifact_inspector.vocabulary.fact import Category, Sign
from artifact_inspector.vocabulary.rows import fact_of

_BY_KEY: Mapping[str, Counterfactual] = {
    kernel_facts.registers.key: counterfactuals.with_registers,
    kernel_facts.shared.key: counterfactuals.with_shared_bytes,
    file_facts.load_widths.key: counterfactuals.with_widths,
    file_facts.copy_widths.key: counterfactuals.with_widths,
    file_facts.store_widths.key: counterfactuals.with_widths,
    file_facts.shared_loads.key: counterfactuals.with_shared_loads,
    file_facts.shared_stores.key: counterfactuals.with_shared_stores,
    region_facts.fused.key: counterfactuals.with_multiply_adds,
    region_facts.matrix.key: counterfactuals.with_matrix_work,
}
_BY_CATEGORY: Mapping[str, Counterfactual] = {
    Category.SPILLS: counterfactuals.with_spills,
    Category.BARRIERS: counterfactuals.with_barriers,
    Category.CONVERSIONS: counterfactuals.with_exchange,
    Category.INSTRUCTIONS: counterfactuals.with_arithmetic,
    Category.OCCUPANCY: counterfactuals.with_residency,
}
_BY_CONSEQUENCE: Mapping[Consequence, Counterfactual] = {
    Consequence.EXCHANGE: counterfactuals.with_exchange,
    Consequence.DRAIN: counterfactuals.with_hidden_loads,
}


def price_facts(facts: Sequence[FactPair], left: LaunchModel, right: LaunchModel) -> Mapping[str, float]:
    """Key of a fact → predicted time of the right side ÷ that of the left by this fact only; without unknown ones."""
    prices: dict[str, float] = {}
    known: dict[tuple[Counterfactual, bool], float | None] = {}
    for fact in facts:
        definition = fact_of(fact.key, fact.region)
        recost = _BY_KEY.get("" if definition is None else definition.key)
        recost = recost or _BY_CONSEQUENCE.get(consequence_of(fact)) or _BY_CATEGORY.get(fact.category)
        if recost is None or fact.direction is Sign.NEUTRAL:
            continue
        is_worse = fact.direction is Sign.WORSE
        more, less = (right, left) if is_worse else (left, right)
        if (recost, is_worse) not in known:
            known[recost, is_worse] = recost(more, less)
        cycles = known[recost, is_worse]
        if cycles and more.cycles:
            prices[fact.key] = more.cycles / cycles if is_worse else cycles / more.cycles
    return prices

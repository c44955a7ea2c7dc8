"""What a difference costs: the order in which differences are reported."""

from __future__ import annotations

from collections.abc import Iterable

from artifact_inspector.comparison.fact_pair import SIDES, FactPair, State
from artifact_inspector.findings import RULES
from artifact_inspector.model import Consequence
from artifact_inspector.model.shared import SharedRole
from artifact_inspector.vocabulary import file_facts, finding_facts, iteration_facts, kernel_facts
from artifact_inspector.vocabulary.fact import Category, Sign, Unit, Value
from artifact_inspector.vocabulary.names import is_loop_name
from artifact_inspector.vocabulary.rows import CATEGORIES, fact_of
from artifact_inspector.vocabulary.value_reading import MINOR_SHARE, compare_widths, read_widths

FREE_WITHIN = 0.01
"""Prices this close to 1 cost nothing."""
COUNTS = frozenset({Category.REGISTERS, Category.INSTRUCTIONS, Category.BOUNDS})
SYNCHRONISATION = frozenset({Category.CONVERSIONS, Category.BARRIERS})
"""Categories of counts that cost more than others: all warps wait."""
SMALL_SPILL = 16
"""Bytes per thread: four registers."""
_SIGNS = tuple(Sign)
EXCHANGES = frozenset(
    kernel_facts.shared_by_purpose.key.format(role.value)
    for role in (SharedRole.CONVERSION, SharedRole.REDUCTION, SharedRole.SCAN)
)
"""Shared memory through which warps exchange values, with barriers around it."""
_SHARED_ACCESSES = (
    file_facts.shared_loads, file_facts.shared_stores, iteration_facts.shared_loads, iteration_facts.shared_stores,
    iteration_facts.shared_loads_once, iteration_facts.shared_stores_once,
)  # fmt: skip
_COUNTED = COUNTS | {Category.IN_FLIGHT, Category.BARRIERS}
"""Categories of figures that decide nothing by themselves where they change little."""


def consequence_of(fact: FactPair) -> Consequence:
    """The consequence of a difference in a fact for a launch of the kernel."""
    row = fact_of(fact.key, fact.region)
    if row is not None and row.costs is not None:
        return row.costs(fact.left, fact.right)
    if row in (finding_facts.findings, finding_facts.findings_on_registers):
        return _worst_rule(fact)
    if (fact.key in EXCHANGES or row in _SHARED_ACCESSES) and _is_doubled(fact.left, fact.right):
        return Consequence.EXCHANGE
    return Category(fact.category).consequence


def _is_doubled(left: Value, right: Value) -> bool:
    """Whether one amount is at least twice the other; None is no buffer at all."""
    amounts = [value or 0 for value in (left, right) if value is None or isinstance(value, int | float)]
    return len(amounts) == len(SIDES) and max(amounts) >= 2 * min(amounts)


def _worst_rule(fact: FactPair) -> Consequence:
    """What the most important finding is about that only one side has."""
    sides = [set(value) if isinstance(value, tuple) else set() for value in (fact.left, fact.right)]
    consequences = [rule.consequence for rule in RULES if rule.code in sides[0] ^ sides[1]]
    return min(consequences, key=lambda consequence: consequence.rank, default=Consequence.OTHER)


def rank_of(fact: FactPair) -> int:
    """0 for the most important; an exchange that both have comes after occupancy, its accesses last.

    Fewer spills come after a lost pipeline or matrix unit: one stage less takes fewer registers, and more time.
    """
    consequence = consequence_of(fact)
    if is_small_spill(fact):
        return Consequence.OCCUPANCY.rank
    if consequence is Consequence.SPILLS and fact.direction is Sign.BETTER:
        return Consequence.OPERANDS.rank
    if fact_of(fact.key, fact.region) in _SHARED_ACCESSES:
        return Consequence.OTHER.rank
    is_common = consequence is Consequence.EXCHANGE and fact.state is not State.ONE_SIDED
    return Consequence.ORDER.rank if is_common else consequence.rank


def is_small_spill(fact: FactPair) -> bool:
    """Whether a fact is the spills of a kernel, and they change by four registers at most."""
    if fact_of(fact.key, fact.region) is not kernel_facts.spills:
        return False
    left, right = fact.left or 0, fact.right or 0
    return isinstance(left, int) and isinstance(right, int) and abs(right - left) <= SMALL_SPILL


def is_minor(fact: FactPair) -> bool:
    """Whether a fact decides nothing by itself: it is free, reads operands early, or changed by at most a tenth."""
    if fact.price is not None:
        return abs(fact.price - 1) <= FREE_WITHIN
    if fact_of(fact.key, fact.region) is iteration_facts.shared_loads_ahead:
        return True
    left, right = fact.left, fact.right
    if isinstance(left, tuple) and isinstance(right, tuple):
        widths = read_widths(left), read_widths(right)
        means = None if widths[0] is None or widths[1] is None else compare_widths(widths[0], widths[1])
        if consequence_of(fact) is not Consequence.ACCESS or means is None:
            return False
        left, right = means
    elif (
        (fact.category not in _COUNTED and fact.unit != Unit.PERCENT)
        or not isinstance(left, int | float)
        or not isinstance(right, int | float)
    ):
        return False
    is_overlap = fact.category == Category.IN_FLIGHT and fact.unit == Unit.PERCENT
    return abs(right - left) <= MINOR_SHARE * (100 if is_overlap else max(abs(left), abs(right)))


def differing_facts(facts: Iterable[FactPair]) -> tuple[FactPair, ...]:
    """The facts that differ, the decisive one first."""
    return tuple(sorted((fact for fact in facts if fact.differs), key=decisiveness_of))


def decisiveness_of(fact: FactPair) -> tuple[int, ...]:
    """Sorts the decisive fact first: signed before neutral, facts that cost nothing last, then by consequence."""
    rank = Consequence.OTHER.rank if fact.unknown else rank_of(fact)
    is_in_loop = is_loop_name(fact.region)
    return (
        fact.direction is Sign.NEUTRAL,
        fact.price is not None and is_minor(fact),
        rank,
        is_minor(fact),
        bool(fact.unknown),
        fact.category == Category.FINDINGS,  # what it is about says more
        fact_of(fact.key, fact.region) in iteration_facts.ONCE,  # a loop repeats others
        _SIGNS.index(fact.direction),
        fact.category not in SYNCHRONISATION,
        not is_in_loop and bool(fact.region),
        isinstance(fact.left or fact.right, tuple | str),  # figures say more than words
        CATEGORIES.index(fact.category) if fact.category in CATEGORIES else len(CATEGORIES),
    )

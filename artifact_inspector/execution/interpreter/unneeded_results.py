"""Instructions whose results decide nothing: they reach no address, no guard and no branch.

A simulation counts what is executed and accessed. Most instructions of a kernel compute data, which is only stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from artifact_inspector.execution.interpreter.reconvergence import BlockRange


class StepUse(NamedTuple):
    """What one instruction defines and reads."""

    results: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """What its results depend on."""
    always_reads: tuple[str, ...] = ()
    """What decides whether it executes and what it accesses."""
    overwrites: bool = True
    """Whether all lanes for which the guard holds get new results."""
    guard: str = ""
    """The predicate of the lanes that read and get results, `!P0` if it must not hold; empty for all."""
    unguarded_results: tuple[str, ...] = ()
    """Results that the other lanes get, too."""
    guard_sources: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Guard that it changes → guards before it that hold, together, for at least the same lanes."""
    is_optional: bool = True
    """Whether it does nothing but write its results."""


def find_unneeded_results(blocks: Sequence[BlockRange], uses: Sequence[StepUse]) -> frozenset[int]:
    """The optional instructions whose results decide nothing: live variables, backwards over the blocks.

    Example:
        >>> copy, load = StepUse(("R2",), ("R1",)), StepUse(("R3",), (), ("R2",))
        >>> add = StepUse(("R4",), ("R3", "R2"))
        >>> sorted(find_unneeded_results([BlockRange(0, 3, ())], [copy, load, add]))
        [1, 2]
    """
    needed_at: list[dict[str, frozenset[str]]] = [{} for _ in blocks]
    predecessors: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].append(number)
    guards = {name.lstrip("!") for use in uses for name in (use.guard, *sum(use.guard_sources.values(), ()))}
    unneeded: list[set[int]] = [set() for _ in blocks]
    pending = list(range(len(blocks)))
    while pending:
        number = pending.pop()
        block = blocks[number]
        needed: dict[str, frozenset[str]] = {}  # name → guards of the lanes in which it is needed
        for successor in block.successors:
            for name, conditions in needed_at[successor].items():
                needed[name] = needed.get(name, _NOWHERE) | conditions
        unneeded[number].clear()
        for at in range(block.stop - 1, block.start - 1, -1):
            if _add_needs(uses[at], needed, guards):
                unneeded[number].add(at)
        if needed != needed_at[number]:
            needed_at[number] = needed
            pending += predecessors[number]
    return frozenset().union(*unneeded)


_NOWHERE = frozenset[str]()


def _add_needs(use: StepUse, needed: dict[str, frozenset[str]], guards: set[str]) -> bool:
    """Change what is needed after an instruction to what is needed before it; whether its results are not."""
    is_unneeded = use.is_optional and needed.keys().isdisjoint(use.results)
    if not is_unneeded:
        if changed := guards.intersection((*use.results, *use.guard_sources)):
            sources = {form: use.guard_sources.get(form, ("",)) for guard in changed for form in (guard, f"!{guard}")}
            renamed = {
                conditions: frozenset().union(*(sources.get(guard, (guard,)) for guard in conditions))
                for conditions in {*needed.values()}  # few are different
            }
            needed.update({name: renamed[conditions] for name, conditions in needed.items()})
        for name in use.results if use.overwrites else ():
            others = needed.pop(name, _NOWHERE) - {use.guard}
            if use.guard and others and name not in use.unguarded_results:
                needed[name] = others
        for name in use.reads:
            needed[name] = needed.get(name, _NOWHERE) | {use.guard}
    for name in use.always_reads:
        needed[name] = needed.get(name, _NOWHERE) | {"" if name == use.guard.lstrip("!") else use.guard}
    return is_unneeded

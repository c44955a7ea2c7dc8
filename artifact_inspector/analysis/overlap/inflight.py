"""The loads that are issued and not complete, for each region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from artifact_inspector.analysis.flow.always import find_always
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.overlap.memory_events import Issue, WaitFor
from artifact_inspector.analysis.overlap.steady_state import Measure, Walk
from artifact_inspector.analysis.overlap.waits import Wait, WaitEffect, iterations_left
from artifact_inspector.model import Queue
from artifact_inspector.model.limits import CARRIED

_UNSETTLED = "the number of loads in flight does not reach a steady state"
_CROWDED = f"too many loads are in flight at branches to follow them: raise the limit with {CARRIED.switch}"
_UNROLLED = "not a loop at this stage: its loads are counted in the region that contains them"
_BOUNDED = "copies complete in other code: at most one phase of each of their barriers is in flight"


@dataclass(frozen=True, slots=True)
class InFlight:
    """The loads in flight in a region; for a loop, in its steady state."""

    max_loads: int | None
    """Maximum number of load instructions (or operations, in tensor-level IR) issued and not complete."""
    max_bytes_per_thread: float | None
    """Maximum bytes of such loads for each thread; None if the width of a load is unknown."""
    compute_covered: float | None
    """Share of the region's matrix and float instructions issued while a load is in flight."""
    distance: tuple[int, int] | None
    """Instructions between issue and completion of its loads: least and most."""
    waits: tuple[WaitEffect, ...]
    levels: tuple[tuple[int, int], ...]
    """(line, loads in flight after it) in execution order, for the lines that change the number."""
    notes: tuple[str, ...]

    @property
    def drains(self) -> tuple[int, ...]:
        """Lines of the waits that drain the loop's pipeline."""
        return tuple(found.line for found in self.waits if found.drains)


def find_in_flight(
    walk: Walk, prefix: str = "", unrolled: Mapping[str, int] = MappingProxyType({})
) -> dict[str, InFlight]:
    """The loads in flight in each region of a function, by name.

    Args:
        prefix: of the names of the regions, if the file has several functions.
        unrolled: iterations of the source in one iteration, for regions with several.
    """
    code, untold = walk.code, find_untold(walk)
    return {
        (name := prefix + region.id): _facts(
            code,
            measure,
            untold[region.id],
            walk.threads,
            _effects(code, region, measure, unrolled.get(name, 1), name),
        )
        for region, measure in zip(walk.regions, walk.measures, strict=True)
    }


def find_untold(walk: Walk) -> dict[str, list[str]]:
    """Reasons why the loads in flight in each region are unknown; empty if they are known."""
    lines = walk.code.function.instructions
    lost = [lines[at].line for found in walk.events for at, what in found if _is_lost(what)]
    return {
        region.id: _unknown(walk.code, region, measure, walk, lost)
        for region, measure in zip(walk.regions, walk.measures, strict=True)
    }


def _unknown(code: Code, region: Region, measure: Measure, walk: Walk, lost: list[int]) -> list[str]:
    """Reasons why the loads in flight in a region are unknown; empty if they are known."""
    instructions = code.function.instructions
    reasons = []
    if region.remains is not None:
        reasons.append(_UNROLLED)
    if walk.is_crowded:
        reasons.append(_CROWDED)
    if walk.unsettled and (region.loop is None or region.loop in walk.unsettled):
        reasons.append(_UNSETTLED)
    if measure.untold:
        line = instructions[min(measure.untold)].line
        reasons.append(f"unknown which wait completes the load of line {line}")
    if lost and measure.has_phases:
        reasons.append(f"unknown which copies a barrier waits for (line {lost[0]})")
    phases = {
        at: (passed.what.array.start, passed.before)
        for at, passed in measure.waits.items()
        if passed.what.array is not None
    }
    met = {start for start, before in phases.values() if before} - walk.foreign
    foreign = [instructions[at].line for at, (start, _) in phases.items() if start not in met]
    if foreign:
        reasons.append(f"line {foreign[0]} waits for copies that other code issues")
    return reasons


def _facts(
    code: Code, measure: Measure, unknown: list[str], threads: int | None, waits: tuple[WaitEffect, ...]
) -> InFlight:
    instructions = code.function.instructions
    notes = list(unknown)
    if measure.unread:
        notes.append(f"loads with unused results are not counted: {len(measure.unread)}")
    if measure.bounded:
        notes.append(_BOUNDED)
    if unknown:
        return InFlight(None, None, None, None, waits, (), tuple(notes))
    return InFlight(
        measure.loads,
        None if measure.bytes is None else _plain(Fraction(measure.bytes, threads or 1)),
        measure.covered / measure.computes if measure.computes else None,
        (min(measure.distances), max(measure.distances)) if measure.distances else None,
        waits,
        _levels((instructions[at].line, *change) for at, change in measure.levels.items()),
        tuple(notes),
    )


def _effects(
    code: Code, region: Region, measure: Measure, unrolled: int, name: str
) -> tuple[WaitEffect, ...]:
    loop, flow = region.loop, code.flow
    if not measure.waits:
        return ()
    always = None if loop is None else find_always(code.function, flow, loop)
    return tuple(
        WaitEffect(
            Wait(
                code.function.instructions[at].line,
                passed.what.wait.op,
                passed.what.wait.depth,
                passed.what.wait.queue,
                name,
            ),
            passed.before,
            passed.after,
            passed.groups,
            iterations_left(passed.what.wait.depth, measure.commits / unrolled)
            if passed.what.wait.queue is Queue.GROUP
            else None,
            passed.drains and loop is not None,
            always is None or flow.block_of[at] in always,
        )
        for at, passed in measure.waits.items()
    )


def _is_lost(what: object) -> bool:
    """True for a copy to, or a wait for, an unknown barrier."""
    if isinstance(what, Issue):
        return what.transfer.queue is Queue.PHASE and what.array is None
    return isinstance(what, WaitFor) and what.wait.queue is Queue.PHASE and what.array is None


def _levels(changes: Iterable[tuple[int, int, int]]) -> tuple[tuple[int, int], ...]:
    """(line, after) of changes (line, before, after), for each line with a net change."""
    lines: dict[int, tuple[int, int]] = {}
    for line, before, after in changes:
        lines[line] = (lines.get(line, (before,))[0], after)
    return tuple((line, after) for line, (before, after) in lines.items() if before != after)


def _plain(number: Fraction) -> int | float:
    return number.numerator if number.denominator == 1 else float(number)

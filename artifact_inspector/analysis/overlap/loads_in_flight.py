"""The loads that are issued and not complete, for each region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.mutual_exclusion import find_unconditional_blocks
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.overlap.memory_events import IssuedOperation, QueueWait
from artifact_inspector.analysis.overlap.steady_state import InFlightWalk, RegionMeasurement
from artifact_inspector.analysis.overlap.waits import WaitEffect, WaitFacts, iterations_left
from artifact_inspector.model import Queue
from artifact_inspector.model.limits import LOADS_IN_FLIGHT

_UNSETTLED = "the number of loads in flight does not reach a steady state"
_TRUNCATED = "the file is truncated"
_CROWDED = f"too many loads are in flight at branches to follow them: raise the limit with {LOADS_IN_FLIGHT.variable}"
_UNROLLED = "not a loop at this stage: its loads are counted in the region that contains them"
_BOUNDED = "copies complete in other code: at most one phase of each of their barriers is in flight"


@dataclass(frozen=True, slots=True)
class LoadsInFlight:
    """The loads in flight in a region; for a loop, in its steady state."""

    max_loads: int | None
    """Maximum number of load instructions (or operations, in tensor-level IR) issued and not complete."""
    max_bytes_per_thread: float | None
    """Maximum bytes of such loads for each thread; None if the width of a load is unknown."""
    compute_overlap: float | None
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
        return tuple(effect.line for effect in self.waits if effect.drains)


def find_in_flight(
    walk: InFlightWalk, prefix: str = "", unrolled: Mapping[str, int] = MappingProxyType({})
) -> dict[str, LoadsInFlight]:
    """The loads in flight in each region of a function, by name.

    Args:
        prefix: of the names of the regions, if the file has several functions.
        unrolled: iterations of the source in one iteration, for regions with several.
    """
    reasons, facts = find_unknown_reasons(walk), {}
    for region, measure in zip(walk.regions, walk.measures, strict=True):
        name = prefix + region.id
        waits = _effects(walk.code, region, measure, unrolled.get(name, 1), name)
        facts[name] = _facts(walk, measure, reasons[region.id], waits)
    return facts


def find_unknown_reasons(walk: InFlightWalk) -> dict[str, list[str]]:
    """Reasons why the loads in flight in each region are unknown; empty if they are known."""
    instructions = walk.code.instructions
    lost = [instructions[at].line for events in walk.events for at, action in events if _has_unknown_barrier(action)]
    return {
        region.id: _unknown_reasons(region, measure, walk, lost)
        for region, measure in zip(walk.regions, walk.measures, strict=True)
    }


def _unknown_reasons(region: Region, measure: RegionMeasurement, walk: InFlightWalk, lost: list[int]) -> list[str]:
    instructions = walk.code.instructions
    reasons = []
    if region.residue is not None:
        reasons.append(_UNROLLED)
    if region.loop is None and not walk.code.module.is_complete:
        reasons.append(_TRUNCATED)
    if walk.is_crowded:
        reasons.append(_CROWDED)
    if walk.unsettled_loops and (region.loop is None or region.loop in walk.unsettled_loops):
        reasons.append(_UNSETTLED)
    if measure.unknown_loads:
        line = instructions[min(measure.unknown_loads)].line
        reasons.append(f"unknown which wait completes the load of line {line}")
    if lost and measure.has_phases:
        reasons.append(f"unknown which copies a barrier waits for (line {lost[0]})")
    phases = {
        at: (wait.queue_wait.array.start, wait.in_flight_before)
        for at, wait in measure.waits.items()
        if wait.queue_wait.array is not None
    }
    waited_arrays = {start for start, loads_before in phases.values() if loads_before} - walk.foreign_barriers
    foreign = [instructions[at].line for at, (start, _) in phases.items() if start not in waited_arrays]
    if foreign:
        reasons.append(f"line {foreign[0]} waits for copies that other code issues")
    return reasons


def _facts(
    walk: InFlightWalk, measure: RegionMeasurement, unknown: list[str], waits: tuple[WaitEffect, ...]
) -> LoadsInFlight:
    notes = list(unknown)
    if measure.unused_loads:
        notes.append(f"loads with unused results are not counted: {len(measure.unused_loads)}")
    if measure.is_bounded:
        notes.append(_BOUNDED)
    if unknown:
        return LoadsInFlight(None, None, None, None, waits, (), tuple(notes))
    levels: dict[int, tuple[int, int]] = {}
    for at, (loads_before, loads_after) in measure.levels.items():
        line = walk.code.instructions[at].line
        levels[line] = (levels.get(line, (loads_before,))[0], loads_after)
    return LoadsInFlight(
        measure.loads,
        None if measure.bytes is None else plain_number(Fraction(measure.bytes, walk.threads or 1)),
        measure.overlapped_computes / measure.computes if measure.computes else None,
        (min(measure.distances), max(measure.distances)) if measure.distances else None,
        waits,
        tuple((line, after) for line, (loads_before, after) in levels.items() if loads_before != after),
        tuple(notes),
    )


def _effects(
    code: FunctionCode, region: Region, measure: RegionMeasurement, unrolled: int, name: str
) -> tuple[WaitEffect, ...]:
    loop, flow = region.loop, code.flow
    if not measure.waits:
        return ()
    always = None if loop is None else find_unconditional_blocks(code, loop)
    effects = []
    for at, executed in measure.waits.items():
        op, depth, queue = executed.queue_wait.wait.op, executed.queue_wait.wait.depth, executed.queue_wait.wait.queue
        effects.append(
            WaitEffect(
                WaitFacts(code.instructions[at].line, op, depth, queue, name),
                executed.in_flight_before,
                executed.in_flight_after,
                executed.groups,
                iterations_left(depth, measure.commits / unrolled) if queue is Queue.GROUP else None,
                executed.drains and loop is not None,
                always is None or flow.block_of[at] in always,
            )
        )
    return tuple(effects)


def _has_unknown_barrier(action: object) -> bool:
    """True for a copy to, or a wait for, an unknown barrier."""
    if isinstance(action, IssuedOperation):
        return action.transfer.queue is Queue.PHASE and action.array is None
    return isinstance(action, QueueWait) and action.wait.queue is Queue.PHASE and action.array is None


def plain_number(number: Fraction) -> int | float:
    """A number as an int if it is whole."""
    return number.numerator if number.denominator == 1 else float(number)

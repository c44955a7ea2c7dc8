"""Causes in global and shared memory: conflicts, unused sectors, repeated loads, atomics, spills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from artifact_inspector.diagnosis.attribution import Attribution, attribute, group_by_line
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, with_contiguous_accesses, without_conflicts
from artifact_inspector.execution.interpreter.program import ProgramStep

LEAST_EXCESS = 1.5
"""Factor over the ideal from which wavefronts, sectors or bytes are excessive."""
LEAST_LINE_EXCESS = 4.0
"""The same for cache lines on AMD, which other accesses may use."""
_READS = ("global_load", "copy")
_ATOMICS = ("global_atomic", "global_reduction")
_WARP_ATOMIC_CYCLES = 1.7
"""Cycles between two integer atomics of warps on one address, whose lanes are combined. Measured on an H200: 1.67 for
additions of 32 lanes and for single maxima, 1.9 for compare-and-swap."""
_FLOAT_ATOMIC_CYCLES = 3.5
"""Cycles between two float atomics of lanes on one address, which are not combined. Measured on an H200."""
_LANES_COMBINED = 32
_CHANCE = 3
"""Lanes of the sampled CTAs that random addresses may share."""
_FLOAT_TYPES = ("F32", "F16", "BF16", "F64", "_f32", "_f16", "_f64")
LEAST_UNROLLED = 4
"""Compare-and-swaps of one line that count as an unrolled loop."""
LEAST_CONTENTION = 32
"""Atomics of a launch on one address from which they contend: those of one warp."""


def find_memory_causes(model: LaunchModel) -> Iterator[Attribution]:
    """The causes in global and shared memory."""
    yield from _bank_conflicts(model)
    yield from _uncoalesced(model)
    yield from _redundant_loads(model)
    yield from _invariant_loads(model)
    yield from _spills(model)
    yield from _atomics(model)


def _total(counter: Sequence[int], steps: Sequence[ProgramStep]) -> int:
    return sum(counter[step.index] for step in steps)


def _bank_conflicts(model: LaunchModel) -> Iterator[Attribution]:
    counters = model.counters
    for line, steps in group_by_line(model, lambda step: counters.wavefronts[step.index] > 0).items():
        actual, ideal = _total(counters.wavefronts, steps), _total(counters.wavefronts_ideal, steps)
        if not ideal or actual < LEAST_EXCESS * ideal:
            continue
        conflicting = [s for s in steps if counters.wavefronts[s.index] > counters.wavefronts_ideal[s.index]]
        share = model.share_of(without_conflicts(model.sample, [step.index for step in conflicting]))
        copies = any(step.kind == "copy" for step in conflicting)
        access = "asynchronous copies conflict" if copies else "shared memory accesses conflict"
        reason = f"{access} on banks; {actual / ideal:.1f} times the wavefronts of conflict-free ones"
        yield Attribution(CauseKind.BANK_CONFLICTS, line, share, share or 0.0, reason)


def _uncoalesced(model: LaunchModel) -> Iterator[Attribution]:
    counters, kinds = model.counters, (*_READS, "global_store")
    for line, steps in group_by_line(model, lambda step: step.kind in kinds).items():
        actual, ideal = _total(counters.sectors, steps), _total(counters.sectors_ideal, steps)
        if not ideal or actual < (LEAST_EXCESS if model.time is not None else LEAST_LINE_EXCESS) * ideal:
            continue
        if model.time is not None and actual - ideal and _shares_sectors(model, steps):
            yield from _narrow_access(model, line, steps)
            continue
        if line in model.chasing_lines:
            continue  # the chain of loads scatters them
        share = model.share_of(with_contiguous_accesses(model.sample, [step.index for step in steps]))
        weight = model.instruction_share([step.index for step in steps]) if share is None else share
        unit = "cache lines" if model.time is None and model.sample.loaded.initial_state is not None else "sectors"
        reason = (
            f"neighbouring threads access separate {unit}; {actual / ideal:.1f} times the {unit} of contiguous ones"
        )
        yield Attribution(CauseKind.UNCOALESCED, line, share, weight, reason)


def _shares_sectors(model: LaunchModel, steps: Sequence[ProgramStep]) -> bool:
    """Whether the accesses of a line use their sectors completely, if not each access by itself."""
    fetched = sum(model.traffic.new_sectors.get(step.index, 0) for step in steps)
    return len(steps) > 1 and fetched <= LEAST_EXCESS * _total(model.counters.sectors_ideal, steps)


def _narrow_access(model: LaunchModel, line: str, steps: Sequence[ProgramStep]) -> Iterator[Attribution]:
    share = model.share_of(with_contiguous_accesses(model.sample, [step.index for step in steps]))
    reason = "each thread accesses its elements one by one; their contiguity or alignment is not provable"
    yield Attribution(CauseKind.NARROW_ACCESS, line, share, share or 0.0, reason)


def _redundant_loads(model: LaunchModel) -> Iterator[Attribution]:
    traffic = model.traffic
    for line, steps in group_by_line(model, lambda step: step.kind in _READS).items():
        lanes = sum(traffic.active_lanes.get(step.index, 0) for step in steps)
        distinct = sum(traffic.distinct_addresses.get(step.index, 0) for step in steps)
        if not distinct or lanes < 2 * distinct:
            continue
        names = ", ".join(dict.fromkeys(traffic.tensor_of_step.get(step.index, "memory") for step in steps))
        reason = f"each element of {names} is loaded {lanes / distinct:.0f} times; load it once and broadcast it"
        yield attribute(model, CauseKind.REDUNDANT_LOAD, line, steps, reason, left=distinct / lanes)


def _invariant_loads(model: LaunchModel) -> Iterator[Attribution]:
    def is_invariant(step: ProgramStep) -> bool:
        if step.kind not in _READS or not model.is_in_loop(step):
            return False
        accesses = model.traffic.first_addresses.get(step.index, {})
        ctas = {cta for cta, _ in accesses}
        return bool(ctas) and len(accesses) == len(ctas) and sum(accesses.values()) > 2 * len(ctas)

    for line, steps in group_by_line(model, is_invariant).items():
        if model.operations.has(line, "tt.atomic_cas", "tt.atomic_rmw"):
            continue
        trips = max(model.visits[step.index] for step in steps)
        name = model.traffic.tensor_of_step.get(steps[0].index, "memory")
        reason = f"all {trips} iterations load the same elements of {name}; load them before the loop"
        yield attribute(model, CauseKind.INVARIANT_LOAD, line, steps, reason, left=1 / trips)


def _spills(model: LaunchModel) -> Iterator[Attribution]:
    spilling = [step for step in model.steps if step.kind in ("local_load", "local_store")]
    executed = model.counters.warps_executed
    spilling = [step for step in spilling if executed[step.index]]
    if not spilling:
        return
    by_line: Counter[str | None] = Counter()
    for step in spilling:
        by_line[step.source_place] += executed[step.index]
    line = by_line.most_common(1)[0][0]
    per_trip = [step for step in spilling if model.is_in_loop(step)]
    where = f"{len(per_trip)} spill accesses in every iteration" if per_trip else f"{len(spilling)} spill accesses"
    registers = model.resources.registers.value
    limit = f"; {registers} registers per thread do not suffice" if registers else ""
    yield attribute(model, CauseKind.SPILLS, line, spilling, f"{where}{limit}")


def _atomics(model: LaunchModel) -> Iterator[Attribution]:
    for line, steps in group_by_line(model, lambda step: step.kind in _ATOMICS).items():
        swaps = [step for step in steps if "CAS" in step.opcode or "cmpswap" in step.opcode]
        is_loop = len(swaps) >= LEAST_UNROLLED or any(model.is_in_loop(step) for step in swaps)
        hits, serial = _most_on_one_address(model, steps)
        share = None if model.cycles is None else max(0.0, 1 - model.cycles / serial) if serial else 0.0
        if swaps and (is_loop or model.sample.unfinished):
            written = "an atomic became" if model.operations.has(line, "tt.atomic_rmw") else "the atomics form"
            reason = f"{written} a compare-and-swap loop, which repeats when other threads interfere"
            of_steps = attribute(model, CauseKind.COMPARE_AND_SWAP, line, _steps_of_lines(model, steps), reason)
            yield of_steps if share is None else replace(of_steps, share=max(share, of_steps.share or 0.0), weight=1.0)
        elif hits >= LEAST_CONTENTION:
            reason = f"{hits:,.0f} atomics of the launch update one address, one after the other; reduce them first"
            yield Attribution(CauseKind.ATOMIC_CONTENTION, line, share, 1.0 if share is None else share, reason)


def atomic_cycles(model: LaunchModel) -> float:
    """Cycles of the atomics on the address that gets most, one after the other; 0 without atomics."""
    groups = group_by_line(model, lambda step: step.kind in _ATOMICS)
    return max((_most_on_one_address(model, steps)[1] for steps in groups.values()), default=0.0)


def _steps_of_lines(model: LaunchModel, steps: Sequence[ProgramStep]) -> list[ProgramStep]:
    lines, executed = {step.source_place for step in steps}, model.counters.warps_executed
    return [step for step in model.steps if step.source_place in lines and executed[step.index]]


def _most_on_one_address(model: LaunchModel, steps: Sequence[ProgramStep]) -> tuple[float, float]:
    """Atomics of the launch on the address that gets most of them, and their cycles, from the sampled CTAs."""
    traffic, sample = model.traffic, model.sample
    total, distinct, most, address = traffic.count_lanes(step.index for step in steps)
    if not total:
        return 0.0, 0.0
    ctas_there = {cta for s in steps for cta, first in traffic.first_addresses.get(s.index, {}) if first == address}
    # a few lanes meet by chance; one CTA's address may be its own
    is_shared = distinct < total / 2 or len(ctas_there) > 1
    certain = max(0, most - _CHANCE) if len(sample.ctas) > 1 and distinct > 1 else most
    lanes = certain * (sample.launch.ctas / len(sample.ctas) if is_shared and len(sample.ctas) > 1 else 1.0)
    if any(kind in step.opcode for step in steps for kind in _FLOAT_TYPES):
        return lanes, lanes * _FLOAT_ATOMIC_CYCLES
    # lanes of a warp on one address are combined
    warps = sum(model.counters.warps_executed[step.index] for step in steps)
    lanes_per_warp = max(1.0, min(_LANES_COMBINED, most / max(1, warps)))
    return lanes, lanes / lanes_per_warp * _WARP_ATOMIC_CYCLES

"""Causes in global and shared memory: conflicts, unused sectors, repeated loads, atomics, spills."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from artifact_inspector.diagnosis.access_alignment import find_alignment, how_to_widen
from artifact_inspector.diagnosis.arithmetic_causes import is_float_arithmetic
from artifact_inspector.diagnosis.attribution import Attribution, attribute, attribute_repair, group_by_line
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import (
    LaunchModel,
    TimeModel,
    with_contiguous_accesses,
    without_conflicts,
    without_work,
)
from artifact_inspector.execution.interpreter.footprints import SECTOR
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.sampling import LINE, LaunchSample

LEAST_EXCESS = 1.5
"""Factor over the ideal from which wavefronts, sectors or bytes are excessive."""
LEAST_LINE_EXCESS = 4.0
"""The same for cache lines on AMD, which other accesses may use."""
LEAST_COPY = 4
"""Bytes of the narrowest asynchronous copy (PTX ISA, cp.async): narrower loads of operands are not pipelined."""
WIDEST_ACCESS = 16
"""Bytes that a thread accesses by the widest instruction."""
_ADDRESS_FRACTION = 0.5
"""Work that is left of the address arithmetic of repeated loads: one of usually two axes repeats them."""
_READS = ("global_load", "copy")
_STORES = ("global_store", "tensor_store")
_STAGED = ("shared_load", "matrix_load")
_ATOMICS = ("global_atomic", "global_reduction")
ATOMIC_CYCLES = 1.45
"""Cycles of an operation of the L2 for atomics. Measured on an H200 (docs/lab/diagnosis.md)."""
FLOAT_CONFLICT = 2.4
"""Operations for each further lane of a warp on one address, if it adds floats; integers take one. Measured there."""
_CHANCE = 3
"""Lanes of the sampled CTAs that random addresses may share."""
_FLOAT_TYPES = ("F32", "F16", "BF16", "F64", "_f32", "_f16", "_f64")
LEAST_UNROLLED = 4
"""Compare-and-swaps of one line that count as an unrolled loop."""
LEAST_CONTENTION = 32
"""Atomics of a launch on one address from which they contend: those of one warp."""
_ISSUED_PER_CYCLE = 4
"""Instructions of a multiprocessor: one per scheduler."""


def find_memory_causes(model: LaunchModel) -> Iterator[Attribution]:
    """The causes in global and shared memory."""
    yield from find_repeated_work(model)
    yield from _bank_conflicts(model)
    yield from _uncoalesced(model)
    yield from _redundant_loads(model)
    yield from _invariant_loads(model)
    yield from _refetched(model)
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
        indices = [step.index for step in conflicting]
        copies = any(step.kind == "copy" for step in conflicting)
        access = "asynchronous copies conflict" if copies else "shared memory accesses conflict"
        factor = f"{actual / ideal:.1f} times the wavefronts without"
        reason = f"{access} on banks, {factor}; change the tile or the operand's order"
        repair = partial(without_conflicts, steps=indices)
        of_line = attribute_repair(model, CauseKind.BANK_CONFLICTS, line, repair, indices, reason)
        yield of_line if of_line.share is not None else replace(of_line, weight=0.0)


def _uncoalesced(model: LaunchModel) -> Iterator[Attribution]:
    for line, steps in group_by_line(model, lambda step: step.kind in (*_READS, "global_store")).items():
        excess = _sector_excess(model, steps)
        if excess < (LEAST_LINE_EXCESS if model.is_amd else LEAST_EXCESS):
            width = model.bytes_per_lane(steps)
            if not model.is_amd and 0 < width < LEAST_COPY <= width * _elements_per_thread(model, line):
                yield from _attribute_narrow(model, line, steps, width)
            continue
        if _shares_sectors(model, steps):
            yield from _access_in_pieces(model, line, steps)
            continue
        if line in model.chasing_lines:
            continue  # the chain of loads scatters them
        yield _attribute_separate(model, line, steps, "cache lines" if model.is_amd else "sectors", f"{excess:.1f}")


def _sector_excess(model: LaunchModel, steps: Sequence[ProgramStep]) -> float:
    """Sectors that lanes request over those of contiguous bytes; on AMD, cache lines if that is more."""
    counters = model.counters
    excess = _total(counters.sectors, steps) / max(1, _total(counters.sectors_ideal, steps))
    if model.is_amd:
        requested = sum(model.traffic.requested_sectors.get(step.index, 0) for step in steps)
        excess = max(excess, requested * SECTOR / max(1, _total(counters.bytes_requested, steps)))
    return excess


def _shares_sectors(model: LaunchModel, steps: Sequence[ProgramStep]) -> bool:
    """Whether the accesses of a line use their sectors completely, if not each access by itself.

    Another line may fetch them first: all accesses to its tensors count.
    """
    traffic, counters, count = model.traffic, model.counters, len(steps)
    tensors = {traffic.tensor_of_step.get(step.index) for step in steps} - {None}
    is_store = any(step.kind == "global_store" for step in steps)
    same_tensors = [step for step in model.steps if traffic.tensor_of_step.get(step.index) in tensors]
    steps = [step for step in same_tensors if (step.kind == "global_store") is is_store] or steps
    fetched = sum(traffic.new_sectors.get(step.index, 0) for step in steps)
    needed = _total(counters.bytes_requested, steps) / SECTOR if model.is_amd else _total(counters.sectors_ideal, steps)
    return count > 1 and fetched <= LEAST_EXCESS * needed


def _access_in_pieces(model: LaunchModel, line: str, steps: Sequence[ProgramStep]) -> Iterator[Attribution]:
    """Accesses that use their sectors together: each one to many lines, or to few bytes of each thread."""
    size, width = _total(model.counters.bytes_requested, steps), model.bytes_per_lane(steps)
    excess = sum(model.traffic.requested_lines.get(step.index, 0) for step in steps) * LINE / max(1, size)
    # the widest access of each thread explains some of the excess
    least = max(LEAST_LINE_EXCESS, LEAST_EXCESS * WIDEST_ACCESS / max(1.0, width))
    if excess >= least and not model.is_amd and line not in model.chasing_lines:
        yield _attribute_separate(model, line, steps, "cache lines", f"{excess:.0f}")
        return
    if width < WIDEST_ACCESS:
        yield from _attribute_narrow(model, line, steps, width)


def _elements_per_thread(model: LaunchModel, line: str) -> float:
    operations = model.operations
    return operations.accessed_elements.get(line, operations.most_elements or 1) / model.sample.loaded.threads


def _attribute_narrow(
    model: LaunchModel, line: str, steps: Sequence[ProgramStep], width: float
) -> Iterator[Attribution]:
    """Accesses of `width` bytes per thread: wide ones need fewer instructions, and one address for all their bytes.

    Accesses that no layout of the tensor would widen are left out.
    """
    most = min(WIDEST_ACCESS, width * _elements_per_thread(model, line))
    remedy = how_to_widen(model, line, steps, int(width), int(most))
    if remedy is None:
        return
    reason = f"each thread accesses {width:.3g} B at a time; {remedy}"
    addresses = [s for s in _steps_of_lines(model, steps) if not s.kind and not is_float_arithmetic(s)]
    left = 1.0 if line in model.chasing_lines or model.operations.gathers(line) else width / max(width, most)
    fractions = dict.fromkeys((step.index for step in (*steps, *addresses)), left)
    indices = [step.index for step in steps]

    def widen(sample: LaunchSample) -> LaunchSample:
        contiguous = with_contiguous_accesses(sample, indices)
        return replace(without_work(contiguous, fractions), traffic=contiguous.traffic)

    is_copied = width < LEAST_COPY <= most and model.operations.multiplies_at(line)
    released = frozenset(s.index for s in steps if s.kind == "global_load" and is_copied)
    of_line = attribute_repair(model, CauseKind.NARROW_ACCESS, line, widen, fractions, reason, released=released)
    yield replace(of_line, is_of_tensor=find_alignment(model, steps, int(width)) <= width < most)


def _attribute_separate(
    model: LaunchModel, line: str, steps: Sequence[ProgramStep], unit: str, factor: str
) -> Attribution:
    """Accesses of neighbouring threads to separate sectors or cache lines, by their factor over contiguous ones."""
    reason = (
        f"neighbouring threads access separate {unit}, {factor} per useful one; let them access neighbouring elements"
    )
    indices = [step.index for step in steps]
    repair = partial(with_contiguous_accesses, steps=indices)
    return attribute_repair(model, CauseKind.UNCOALESCED, line, repair, indices, reason)


def _redundant_loads(model: LaunchModel) -> Iterator[Attribution]:
    traffic = model.traffic
    # threads without elements repeat those of others
    spare_threads = model.sample.loaded.threads / (model.operations.most_elements or model.sample.loaded.threads)
    for line, steps in group_by_line(model, lambda step: step.kind in _READS and not step.starts_swap).items():
        lanes = sum(traffic.active_lanes.get(step.index, 0) for step in steps)
        distinct = sum(traffic.distinct_addresses.get(step.index, 0) for step in steps)
        if not distinct or lanes < 2 * distinct * max(1.0, spare_threads) or line in model.operations.scalar_loads:
            continue
        if line in model.chasing_lines or model.operations.gathers(line):
            continue  # data decides which lanes share an element
        names = ", ".join(dict.fromkeys(traffic.tensor_of_step.get(step.index, "memory") for step in steps))
        reason = f"each element of {names} is loaded {lanes / distinct:.0f} times; load it once and broadcast it"
        of_lines = _steps_of_lines(model, steps)
        vector = (s for s in of_lines if not s.kind and not s.opcode.startswith(("s_", "U")))
        left = {step.index: _ADDRESS_FRACTION for step in vector if not is_float_arithmetic(step)}
        # shared memory holds copied elements as often as they are copied
        is_staged = any(step.kind == "copy" for step in steps)
        repeated = [*steps, *(step for step in of_lines if step.kind in _STAGED)] if is_staged else steps
        left |= dict.fromkeys((step.index for step in repeated), distinct / lanes)
        repair = partial(without_work, fractions=left)
        yield attribute_repair(model, CauseKind.REDUNDANT_LOAD, line, repair, left, reason)


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
        of_line = attribute(model, CauseKind.INVARIANT_LOAD, line, steps, reason, left=1 / trips)
        # the L1 may not keep them, which the model does not see
        loaded = _total(model.counters.bytes_requested, [step for step in model.steps if step.kind in _READS])
        yield replace(of_line, issued=_total(model.counters.bytes_requested, steps) / max(1, loaded))


def _refetched(model: LaunchModel) -> Iterator[Attribution]:
    """Tensors that device memory delivers several times: the L2 has dropped them when they are read again."""
    time = model.time
    if time is None or not model.cycles:
        return
    sectors = model.traffic.sectors_read
    requested, needed = model.sample.requested_bytes(sectors), model.sample.distinct_bytes(sectors)
    again = {name: size / needed[name] for name, size in time.traffic.fetched.items() if needed.get(name)}
    name = max(again, key=lambda one: again[one] * needed[one], default=None)
    if name is None:
        return
    steps = [step for step in model.steps if model.traffic.tensor_of_step.get(step.index) == name]
    repeating = [step for step in steps if not model.traffic.new_sectors.get(step.index)]
    remedy = "let CTAs that share it run together (order of the grid, GROUP_M)"
    if repeating and requested[name] < LEAST_EXCESS * needed[name]:
        repeating.sort(key=lambda step: -model.traffic.requested_sectors.get(step.index, 0))
        steps, remedy = repeating, "each CTA reads it again after the L2 has dropped it; read it in one pass"
    elif again[name] < LEAST_EXCESS:
        return
    fetched = {one: min(size, needed.get(one, size)) for one, size in time.traffic.fetched.items()}
    once = replace(time, traffic=replace(time.traffic, fetched=fetched))
    share = max(0.0, 1 - once.score(model.sample) / model.cycles)
    reason = f"device memory delivers {name} {again[name]:.1f} times; {remedy}"
    line = next((step.source_place for step in steps), None)
    yield Attribution(CauseKind.REFETCHED, line, share, share, reason)


def _spills(model: LaunchModel) -> Iterator[Attribution]:
    executed = model.counters.warps_executed
    spilling = [step for step in model.steps if step.kind in ("local_load", "local_store") and executed[step.index]]
    if not spilling:
        return
    by_line: Counter[str | None] = Counter()
    for step in spilling:
        by_line[step.source_place] += executed[step.index]
    line = by_line.most_common(1)[0][0]
    per_trip = [step for step in spilling if model.is_in_loop(step)]
    where = f"{len(per_trip)} spill accesses in every iteration" if per_trip else f"{len(spilling)} spill accesses"
    registers = model.resources.registers.value
    limit = f": {registers} registers per thread do not suffice" if registers else ""
    yield attribute(model, CauseKind.SPILLS, line, spilling, f"{where}{limit}; use smaller tiles or more warps")


def _atomics(model: LaunchModel) -> Iterator[Attribution]:
    # the least that the launch takes, if times are not predicted: the cycles in which it issues its instructions
    instructions = sum(model.counters.warps_executed) * model.sample.launch.ctas / len(model.sample.ctas)
    issue_cycles = instructions / (model.multiprocessors or 1) / _ISSUED_PER_CYCLE
    for line, steps in group_by_line(model, lambda step: step.kind in _ATOMICS).items():
        swaps = [step for step in steps if "CAS" in step.opcode or "cmpswap" in step.opcode]
        retried = [step for step in _steps_of_lines(model, steps) if step.assumes_swap] if swaps else []
        is_loop = bool(retried) or len(swaps) >= LEAST_UNROLLED or any(model.is_in_loop(step) for step in swaps)
        hits, serial = _most_on_one_address(model, _loads_of(model, steps) if retried else steps)
        serial = atomic_cycles(model, model.cycles) if retried and model.cycles else serial
        share = None if model.cycles is None else max(0.0, 1 - model.cycles / serial) if serial else 0.0
        if swaps and (is_loop or model.sample.unfinished):
            written = "an atomic became" if model.operations.has(line, "tt.atomic_rmw") else "the atomics form"
            adders = f"; {_at_least(hits)} threads update one address" if hits >= 2 else ""
            reason = (
                f"{written} a compare-and-swap loop, which repeats when other threads interfere{adders}; reduce first"
            )
            of_steps = attribute(model, CauseKind.COMPARE_AND_SWAP, line, _steps_of_lines(model, steps), reason)
            share = None if share is None else max(share, of_steps.share or 0.0)
            yield replace(of_steps, share=share, weight=1.0 if share is None or round(share, 2) else share)
        elif hits >= LEAST_CONTENTION and (share is not None or serial >= issue_cycles):
            reason = (
                f"{_at_least(hits)} atomics of the launch update one address, one after the other; reduce them first"
            )
            yield Attribution(CauseKind.ATOMIC_CONTENTION, line, share, 1.0 if share is None else share, reason)


def atomic_cycles(model: LaunchModel, others: float) -> float:
    """Cycles of a launch that takes `others` if no CTA waits for the atomics of another one."""
    alone, added = serial_cycles(model)
    return max(alone, others + added)


def launch_cycles(model: LaunchModel, time: TimeModel) -> tuple[float, Mapping[str, float]]:
    """Cycles of a launch, from a sample of CTAs; unit → cycles that it is busy, with the atomics on one address."""
    sample, serial = model.sample, max(serial_cycles(model))
    cycles = atomic_cycles(model, max(time.score(sample), time.turnover(sample)))
    return cycles, {**time.terms(sample), "atomics": serial} if serial else time.terms(sample)


def serial_cycles(model: LaunchModel) -> tuple[float, float]:
    """Cycles of the atomics on the address that gets most, one after the other; and of swaps, after other work.

    A loop of swaps is simulated with the tries of one warp. Of those on one address one succeeds per round trip.
    """
    alone = added = 0.0
    for steps in group_by_line(model, lambda step: step.kind in _ATOMICS).values():
        if model.time is not None and any(step.assumes_swap for step in _steps_of_lines(model, steps)):
            loads = _loads_of(model, steps)
            tries = max(model.visits[step.index] for step in steps) / max(1, *(model.visits[s.index] for s in loads))
            others = _most_on_one_address(model, loads)[0] - max(1.0, tries)
            added = max(added, others * model.time.gpu.timing.atomic)
        else:
            alone = max(alone, _most_on_one_address(model, steps)[1])
    return alone, added


def _loads_of(model: LaunchModel, steps: Sequence[ProgramStep]) -> Sequence[ProgramStep]:
    """What reads the values that swaps expect first, once for each thread; the swaps if nothing does."""
    return [step for step in _steps_of_lines(model, steps) if step.starts_swap] or steps


def _steps_of_lines(model: LaunchModel, steps: Sequence[ProgramStep]) -> list[ProgramStep]:
    lines, executed = {step.source_place for step in steps}, model.counters.warps_executed
    return [step for step in model.steps if step.source_place in lines and executed[step.index]]


def _at_least(count: float) -> str:
    """A count of the whole launch, of which sampled CTAs give the least: two digits of it are known."""
    digit = 10 ** max(0, len(f"{count:.0f}") - 2)
    return f"at least {int(count / digit) * digit:,}"


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
    scale = sample.launch.ctas / len(sample.ctas)
    lanes = certain * (scale if is_shared and len(sample.ctas) > 1 else 1.0)
    # all lanes of the launch share the elements of the tensor
    sizes = {region.name: region.stop - region.start for region in traffic.regions}
    size = min((sizes.get(traffic.tensor_of_step.get(step.index, ""), 0) for step in steps), default=0)
    requested = sum(model.counters.bytes_requested[step.index] for step in steps)
    if size and requested:
        lanes = max(lanes, total * scale / max(1.0, size * total / requested))
    per_conflict = FLOAT_CONFLICT if any(kind in step.opcode for step in steps for kind in _FLOAT_TYPES) else 1.0
    recorded = [step.index for step in steps if step.index in traffic.lane_addresses]
    hot, even = traffic.count_atomic_operations(recorded, per_conflict, size)
    hot *= certain / most * (scale if is_shared and len(sample.ctas) > 1 else 1.0)
    return lanes, ATOMIC_CYCLES * max(hot, even * scale if size else 0.0)


def find_repeated_work(model: LaunchModel) -> Iterator[Attribution]:
    """The products that several partitions repeat.

    The tensor-level IR has the same store in several partitions. The machine code has as many copies of it, and in each
    simulated CTA every copy writes the same addresses: what the partitions compute for them is the same.
    """
    for line, partitions in model.operations.partitions_storing.items():
        executed = model.counters.warps_executed
        stores = [s for s in model.steps if s.kind in _STORES and s.source_place == line and executed[s.index]]
        copies = _equal_copies(model, stores)
        if copies < 2 or len(partitions) % copies:
            continue
        names = " and ".join(partitions)
        reason = (
            f"{names} store the same bytes at {line}: each computes the whole tile, {copies} times the work that the "
            "result needs; let each compute its own rows, or use one"
        )
        of_line: defaultdict[str | None, list[ProgramStep]] = defaultdict(list)
        for step in model.steps:
            if step.kind == "tensor" and executed[step.index]:
                of_line[step.source_place].append(step)
        place = max(of_line, key=lambda one: len(of_line[one]), default=None)
        products = [step for steps in of_line.values() for step in steps]
        yield attribute(model, CauseKind.REPEATED_WORK, place or line, products or stores, reason, left=1 / copies)


def _equal_copies(model: LaunchModel, stores: list[ProgramStep]) -> int:
    """How many copies of a store there are, if all write the same addresses in each simulated CTA; else 1."""
    written: defaultdict[str, list[int]] = defaultdict(list)
    traffic = model.traffic
    for step in stores:
        at = sorted(traffic.first_addresses.get(step.index, {}).items())
        written[f"{at} {model.counters.bytes_requested[step.index]}" if at else ""].append(step.index)
    counts = {len(steps) for steps in written.values()}
    return counts.pop() if len(counts) == 1 and "" not in written else 1

"""Causes in instructions: dots on the wrong pipe, index arithmetic, conversions, reductions, barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from artifact_inspector.diagnosis.attribution import Attribution, attribute, attribute_repair, group_by_line
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, without_conflicts, without_work
from artifact_inspector.diagnosis.source_operations import CONVERSIONS, DIVISIONS, DOTS
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.sampling import LINE

_REDUCTIONS = ("tt.reduce", "tt.scan")
SHARED = ("shared_load", "shared_store", "matrix_load", "matrix_store", "barrier", "shuffle")
MEMORY = (
    "global_load", "global_store", "copy", "tensor_load", "tensor_store", "local_load", "local_store",
    "global_atomic", "global_reduction", "tensor",
)  # fmt: skip
_MASKING = ("ISETP", "PLOP3", "P2R", "R2P", "SEL", "LOP3", "v_cmp", "v_cndmask", "s_and", "s_or")
_FLOAT_ARITHMETIC = (
    "FADD", "FMUL", "FFMA", "FMNMX", "FSEL", "FSETP", "MUFU", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "v_add_f", "v_sub_f",
    "v_mul_f", "v_fma", "v_mac_f", "v_pk_", "v_max_f", "v_min_f", "v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt",
)  # fmt: skip
_INT64 = "every iteration computes with 64-bit integers; use 32-bit ones"
_WIDE_CONVERSION = re.compile(r"(I2F|F2I)\b.*\.[US]64|v_cvt_\w*[iu]64")
"""Opcode of a conversion between a 64-bit integer and a float, which the compiler may make of a narrower one."""
_NARROW_READ = re.compile(r"[._][usi](8|16)(?!\d)", re.IGNORECASE)
"""In the opcode of a read of shared memory."""
_SMALL_TILE, _SMALL_DEPTH = 64, 16
"""Rows or columns, and depth, below which and up to which a dot's tile is small: an MMA of a warp group has 64 rows
(PTX ISA, wgmma) and 16-bit operands a depth of 16."""
_TILE_FRACTION = 0.25
"""Work per product that is left if both sides of a tile are four times as long, at least."""
_INT32_FRACTION = 0.25
"""Instructions of a 32-bit product over those of a 64-bit one: one IMAD for four."""
_USUAL_CONVERSION = 1 / 3
"""Urgency of conversions between 16 and 32 bits: mixed precision needs them."""
_CONVERSION_FRACTION = 0.25
"""Instructions of a line that converts operands that are left without the conversion: addresses, for instance."""
_TF32_GAIN = 8
"""Rate of tf32 products over fp32 multiply-adds, at least: A100 white paper, table 1."""
_CONVERT_ONCE = ", each element once; compute with the loaded type", "; convert once, or compute with the loaded type"
"""What to do about conversions: of elements that one CTA converts, and of those that several do."""
_AS_TF32 = "input_precision='tf32'"


def find_arithmetic_causes(model: LaunchModel) -> Iterator[Attribution]:
    """The causes in instructions of loops, and in dots."""
    yield from _dots(model)
    yield from _unused_random(model)
    yield from _small_tile(model)
    yield from _masks(model)
    operations = model.operations
    in_loop = group_by_line(model, model.is_in_loop)
    # 64-bit divisions are calls of a function without source lines
    inherent = [lines for lines in operations.loops if lines & operations.needed_reductions]
    called = [step for step in model.steps if step.source_place is None and model.is_in_loop(step)]
    for line, steps in in_loop.items():
        exchange = [step for step in steps if step.kind in SHARED or is_shuffle(step)]
        integer = [step for step in steps if step.kind not in MEMORY]
        barriers = [step for step in steps if is_barrier(step)]
        if operations.has(line, *_REDUCTIONS) and any(line in lines for lines in inherent):
            continue
        if exchange and operations.has(line, *_REDUCTIONS) and not operations.has(line, *DOTS):
            reason = "every iteration reduces across threads; accumulate per thread and reduce once after the loop"
            yield _reduction(model, line, exchange, integer, reason)
        elif exchange and line in operations.converts_layout and not operations.has(line, *DOTS):
            reason = "every iteration converts a tile's layout through shared memory; keep one layout in the loop"
            yield attribute(model, CauseKind.LAYOUT_CONVERSION, line, exchange, reason)
        elif exchange and line in operations.stores_operand:
            reason = (
                "every iteration stores a computed operand of a dot to shared memory and reads it in another layout; "
                "compute it in the order in which the dot reads it"
            )
            yield attribute(model, CauseKind.LAYOUT_CONVERSION, line, exchange, reason)
        elif barriers and operations.has(line, "gpu.barrier", "ttg.barrier"):
            of_line = attribute(model, CauseKind.BARRIER_PER_TRIP, line, barriers, "")
            plural = f"{len(barriers)} barriers" if len(barriers) > 1 else "a barrier"
            reason = f"every iteration waits at {plural}, for all warps and their loads; remove what is not needed"
            loads = {
                step.index for step in model.steps if step.kind in ("global_load", "copy") and model.is_in_loop(step)
            }
            without = without_work(model.sample, dict.fromkeys((step.index for step in barriers), 0.0))
            share = model.share_of(without, hidden=loads)
            weight = of_line.weight if share is None else share
            yield Attribution(CauseKind.BARRIER_PER_TRIP, line, share, weight, reason)
        wide = [step for step in integer if _WIDE_CONVERSION.match(step.opcode)]
        if wide and line not in operations.wide_integers:
            yield attribute(model, CauseKind.INT64, line, wide, _INT64, left=_INT32_FRACTION)
        if line in operations.wide_integers:
            functions = called if operations.has(line, *DIVISIONS) else []
            yield attribute(model, CauseKind.INT64, line, [*integer, *functions], _INT64, left=_INT32_FRACTION)
        elif line in operations.divides:
            reason = "every iteration divides integers; divide once before the loop, or use a constant divisor"
            yield attribute(model, CauseKind.DIVISION, line, integer, reason)
        elif operations.has(line, *CONVERSIONS) and not operations.has(line, *DOTS):
            reason = f"every iteration converts element types{_CONVERT_ONCE[_shares_loads(model)]}"
            if is_double := line in operations.converts_doubles:
                reason = "every iteration converts to fp64 or back; compute in fp32"
            of_integers = [step for step in integer if step not in (*exchange, *wide)]
            converting = [step for step in of_integers if is_double or not is_float_arithmetic(step)]
            of_line = attribute(model, CauseKind.TYPE_CONVERSION, line, converting, reason)
            of_line = of_line if is_double else replace(of_line, issued=0.0)
            is_usual = line not in operations.converts_bytes
            yield replace(of_line, weight=of_line.weight * _USUAL_CONVERSION) if is_usual else of_line
    yield from _indices_outside_loops(model)


def _unused_random(model: LaunchModel) -> Iterator[Attribution]:
    for line, used in model.operations.unused_random.items():
        steps = [step for step in model.steps if step.source_place == line and step.kind not in MEMORY]
        verb = "is" if used == 1 else "are"
        reason = f"of four random numbers that Philox computes, {used} {verb} used; tl.rand4x and tl.randn4x return all"
        yield attribute(model, CauseKind.UNUSED_RANDOM, line, steps, reason, left=used / 4)


def _indices_outside_loops(model: LaunchModel) -> Iterator[Attribution]:
    """64-bit products, divisions and fp64 outside of loops, which each thread computes for each of its elements."""
    for line, steps in group_by_line(
        model, lambda step: not model.is_in_loop(step) and step.kind not in MEMORY
    ).items():
        if line in model.operations.wide_integers:
            reason = "each thread computes with 64-bit integers; use 32-bit ones"
            yield attribute(model, CauseKind.INT64, line, steps, reason, left=_INT32_FRACTION)
        elif line in model.operations.divides:
            reason = "each thread divides integers; use a constant divisor, or an axis of the grid for each index"
            yield attribute(model, CauseKind.DIVISION, line, steps, reason)
        elif line in model.operations.converts_doubles:
            reason = "each thread converts to fp64 or back; compute in fp32 (a loaded scalar may be the fp64 operand)"
            yield attribute(model, CauseKind.TYPE_CONVERSION, line, steps, reason)


def _reduction(
    model: LaunchModel, line: str, exchange: Sequence[ProgramStep], steps: Sequence[ProgramStep], reason: str
) -> Attribution:
    """A reduction of every iteration: what threads exchange, and an instruction that combines it for each.

    What a thread computes of its own elements is left: it accumulates as many.
    """
    executed = model.counters.warps_executed
    counts = [sum(executed[step.index] for step in some) for some in (exchange, {*steps} - {*exchange})]
    left = dict.fromkeys((step.index for step in steps), max(0.0, 1 - counts[0] / max(1, counts[1])))
    left |= dict.fromkeys((step.index for step in exchange), 0.0)
    repair, released = partial(without_work, fractions=left), _released_loads(model, line)
    return attribute_repair(model, CauseKind.REDUCTION_PER_TRIP, line, repair, left, reason, released=released)


def _released_loads(model: LaunchModel, line: str) -> frozenset[int]:
    """Loads of a loop that only barriers of reductions hold back: without them, earlier loads do not come first."""
    operations = model.operations
    loop = min((lines for lines in operations.loops if line in lines), key=len, default=frozenset())
    inside = [step for step in model.steps if step.source_place in loop and model.is_in_loop(step)]
    barriers = [step for step in inside if is_barrier(step)]
    if not barriers or not all(operations.has(step.source_place, *_REDUCTIONS) for step in barriers):
        return frozenset()
    first = barriers[0].index
    return frozenset(step.index for step in inside if step.kind == "global_load" and step.index > first)


def _dots(model: LaunchModel) -> Iterator[Attribution]:
    operations = model.operations
    for line, steps in group_by_line(model, lambda step: operations.has(step.source_place, *DOTS)).items():
        operand_lines = operations.dot_operands.get(line, frozenset())
        operand_steps = [
            step
            for step in model.steps
            if step.source_place in operand_lines and step.kind in SHARED and model.is_in_loop(step)
        ]
        yield from _narrow_operands(model, line, [*steps, *operand_steps])
        # HFMA2.MMA makes constants on the tensor pipe
        if not any(step.kind == "tensor" and not step.opcode.startswith("HFMA2") for step in steps):
            kinds = {kind for step in steps for kind, _ in step.lane_flop}
            if "fp32" in kinds:
                _, narrow = operations.wide_dots.get(line, ("", ""))
                repair = f"its operands are loaded as {narrow}: multiply {narrow}, which" if narrow else _AS_TF32
                reason = f"the fp32 dot runs on the FMA pipe; {repair} uses the matrix unit"
                rates = {} if model.time is None else model.time.gpu.rates.matrix
                if rates and not narrow and "tf32" not in rates:
                    reason = f"the dot runs on the FMA pipe, and {model.target} has no tf32"
                yield attribute(model, CauseKind.FP32_DOT, line, [*steps, *operand_steps], reason, left=1 / _TF32_GAIN)
        elif (gain := _tf32_gain(model, steps)) > 1 and line not in operations.wide_dots:
            reason = f"the dot multiplies at the fp32 rate; {_AS_TF32} multiplies {gain:.0f} times as fast"
            products = [step for step in steps if step.kind == "tensor"]
            yield attribute(model, CauseKind.FP32_DOT, line, products, reason, left=1 / gain)
        elif line in operations.wide_dots:
            wide, narrow = operations.wide_dots[line]
            used = {step.index: 0.5 for step in (*steps, *operand_steps) if step.kind in (*SHARED, "tensor")}
            used |= {  # conversions are not needed any more
                step.index: _CONVERSION_FRACTION
                for step in model.steps
                if step.source_place in {line, *operand_lines} and step.kind not in (*SHARED, *MEMORY)
                if operations.has(step.source_place, *CONVERSIONS)
            }
            # 16-bit operands are read by LDSM in either order, without conflicts
            sample = without_conflicts(without_work(model.sample, used), list(used))
            share = model.share_of(sample)
            reason = f"the dot multiplies {wide}, but its operands are loaded as {narrow}; multiply {narrow}"
            weight = model.instruction_share(list(used)) if share is None else share
            yield Attribution(CauseKind.WIDE_DOT, line, share, weight, reason)


def _narrow_operands(model: LaunchModel, line: str, steps: Sequence[ProgramStep]) -> Iterator[Attribution]:
    """Operands whose elements of 8 or 16 bits are read from shared memory one by one, and packed in registers."""
    widths = {step.index: _NARROW_READ.search(step.opcode) for step in steps if step.kind == "shared_load"}
    sizes = {index: int(match[1]) // 8 for index, match in widths.items() if match is not None}
    if not sizes:
        return
    least = min(sizes.values())
    packing = [step for step in steps if not step.kind and not is_float_arithmetic(step)]
    fractions = {index: size / 4 for index, size in sizes.items()} | {step.index: least / 4 for step in packing}
    reason = f"an operand of the dot is read from shared memory {least} B at a time; make it contiguous along K"
    repair = partial(without_work, fractions=fractions)
    yield attribute_repair(model, CauseKind.LAYOUT_CONVERSION, line, repair, fractions, reason)


def _shares_loads(model: LaunchModel) -> bool:
    """Whether several CTAs load most bytes that loops load: converted before the launch, they are converted once."""
    loads = [step.index for step in model.steps if step.kind in ("global_load", "copy") and model.is_in_loop(step)]
    names = {model.traffic.tensor_of_step.get(index) for index in loads}
    sectors = {name: count for name, count in model.traffic.sectors_read.items() if name in names}
    requested, distinct = (
        sum(count(sectors).values()) for count in (model.sample.requested_bytes, model.sample.distinct_bytes)
    )
    return requested >= 1.5 * distinct  # halos are loaded twice, too


def _tf32_gain(model: LaunchModel, steps: Sequence[ProgramStep]) -> float:
    """Rate of tf32 products over the rate of fp32 products; 1 for dots of other types, or if a rate is unknown."""
    kinds = {kind for step in steps if step.kind == "tensor" for kind, _ in step.lane_flop}
    rates = {} if model.time is None else model.time.gpu.rates.matrix
    fp32, tf32 = rates.get("f32"), rates.get("tf32")
    return tf32 / fp32 if kinds == {"fp32"} and fp32 and tf32 else 1.0


_LEAST_REUSE = 0.9
"""Share of the bytes that would still be requested with larger tiles, below which these are proposed."""


def _small_tile(model: LaunchModel) -> Iterator[Attribution]:
    """Larger tiles read operands that several CTAs share fewer times, and run fewer iterations."""
    tile = model.operations.dot_tile
    if tile is None:
        return
    is_small = any(
        extent < _SMALL_TILE and grows for extent, grows in zip(tile, model.operations.grows_tile, strict=False)
    )
    if not is_small and tile[2] > _SMALL_DEPTH:
        return
    sample = model.sample
    scale = 32 * sample.launch.ctas / len(sample.ctas)
    sizes = {region.name: region.stop - region.start for region in model.traffic.regions}
    read = {name: count * scale for name, count in model.traffic.sectors_read.items() if count}
    repeats = {name: min(1.0, max(0.25, sizes.get(name, 0) / size)) for name, size in read.items()}
    fractions = {index: repeats.get(name, 1.0) for index, name in model.traffic.tensor_of_step.items()}
    loaded = {model.traffic.tensor_of_step.get(s.index, "") for s in model.steps if s.kind in ("global_load", "copy")}
    requested = {name: size for name, size in read.items() if name in loaded}
    # of all bytes: a small tensor that every CTA reads again is no reason for larger tiles
    least = sum(size * repeats[name] for name, size in requested.items()) / max(1, sum(requested.values()))
    is_small = is_small and bool(requested) and least < _LEAST_REUSE
    if is_small:
        for step in model.steps:
            if model.is_in_loop(step) and step.kind not in MEMORY[:5]:
                fractions[step.index] = max(least, _TILE_FRACTION)
    elif tile[2] <= _SMALL_DEPTH:
        fractions = {step.index: 0.5 for step in model.steps if model.is_in_loop(step) and step.kind not in MEMORY}
        # deeper tiles request complete lines
        lines = dict(sample.traffic.requested_lines)
        for step in model.steps:
            if step.kind in ("global_load", "copy") and step.index in lines and model.is_in_loop(step):
                lines[step.index] = min(lines[step.index], max(1, model.counters.bytes_requested[step.index] // LINE))
        sample = replace(sample, traffic=replace(sample.traffic, requested_lines=lines))
    else:
        return
    dots = [line for line, names in model.operations.operations.items() if not names.isdisjoint(DOTS)]
    larger = without_work(sample, fractions)
    share = model.share_of(larger)
    if model.time is not None and model.cycles:
        traffic = model.time.traffic
        fetched = {
            name: max(min(count, sizes.get(name, count)), count * repeats.get(name, 1.0))
            for name, count in traffic.fetched.items()
        }
        time = replace(model.time, traffic=replace(traffic, fetched=fetched))
        share = max(0.0, 1 - time.score(larger) / model.cycles)
    rows, columns, depth = tile
    fault = "reuses each loaded element too little" if is_small else "is shallow: an iteration has too little work"
    reason = f"a tile of {rows}×{columns}×{depth} {fault}; use larger tiles"
    weight = model.instruction_share(list(fractions)) / 2 if share is None else share
    yield Attribution(CauseKind.SMALL_TILE, min(dots, default=None), share, weight, reason)


def _masks(model: LaunchModel) -> Iterator[Attribution]:
    operations = model.operations
    compares = group_by_line(
        model, lambda step: model.is_in_loop(step) and step.opcode.startswith(_MASKING) and step.kind not in MEMORY
    )
    for line, steps in compares.items():
        if operations.has(line, "arith.cmpi") and not operations.has(line, "scf.for", *_REDUCTIONS):
            reason = "every iteration computes masks; peel the masked tail, or pad to a multiple of the tile"
            yield attribute(model, CauseKind.MASKS, line, steps, reason)


def is_float_arithmetic(step: ProgramStep) -> bool:
    """Whether an instruction computes with floats, other than by converting them."""
    return step.opcode.startswith(_FLOAT_ARITHMETIC) and not step.opcode.startswith(("HADD2.F32", "v_cvt"))


def is_shuffle(step: ProgramStep) -> bool:
    """Whether lanes exchange registers."""
    return step.opcode.startswith(("SHFL", "REDUX", "ds_swizzle", "ds_bpermute", "v_permlane", "ds_permute"))


def is_barrier(step: ProgramStep) -> bool:
    """Whether the warps of a CTA wait for each other."""
    return step.kind == "barrier" or step.opcode.startswith(("BAR", "s_barrier"))

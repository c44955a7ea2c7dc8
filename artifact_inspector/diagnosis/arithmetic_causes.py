"""Causes in instructions: dots on the wrong pipe, index arithmetic, conversions, reductions, barriers."""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.diagnosis.attribution import Attribution, attribute, group_by_line
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, without_conflicts, without_work
from artifact_inspector.diagnosis.source_operations import DIVISIONS
from artifact_inspector.execution.interpreter.program import ProgramStep

_DOTS = ("tt.dot", "tt.dot_scaled")
_REDUCTIONS = ("tt.reduce", "tt.scan")
_CONVERSIONS = ("arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "tt.fp_to_fp")
_SHARED = ("shared_load", "shared_store", "matrix_load", "matrix_store", "barrier", "shuffle")
_MEMORY = (
    "global_load", "global_store", "copy", "tensor_load", "tensor_store", "local_load", "local_store",
    "global_atomic", "global_reduction", "tensor",
)  # fmt: skip
_MASKING = ("ISETP", "PLOP3", "P2R", "R2P", "SEL", "LOP3", "v_cmp", "v_cndmask", "s_and", "s_or")
_SMALL_TILE, _SMALL_DEPTH = 64, 16
"""Rows or columns, and depth, below which and up to which a dot's tile is small: an MMA of a warp group has 64 rows
(PTX ISA, wgmma) and 16-bit operands a depth of 16."""
_TILE_FRACTION = 0.25
"""Work per product that is left if both sides of a tile are four times as long, at least."""
_INT32_FRACTION = 0.25
"""Instructions of a 32-bit product over those of a 64-bit one: one IMAD for four."""
_TF32_GAIN = 8
"""Rate of tf32 products over fp32 multiply-adds, at least: A100 white paper, table 1."""


def find_arithmetic_causes(model: LaunchModel) -> Iterator[Attribution]:
    """The causes in instructions of loops, and in dots."""
    yield from _dots(model)
    yield from _small_tile(model)
    yield from _masks(model)
    operations = model.operations
    in_loop = group_by_line(model, model.is_in_loop)
    # 64-bit divisions are calls of a function without source lines
    called = [step for step in model.steps if step.source_place is None and model.is_in_loop(step)]
    for line, steps in in_loop.items():
        exchange = [step for step in steps if step.kind in _SHARED or _is_shuffle(step)]
        integer = [step for step in steps if step.kind not in _MEMORY]
        barriers = [step for step in steps if _is_barrier(step)]
        if exchange and operations.has(line, *_REDUCTIONS) and not operations.has(line, *_DOTS):
            reason = "every iteration reduces across threads; accumulate per thread and reduce once after the loop"
            yield attribute(model, CauseKind.REDUCTION_PER_TRIP, line, integer, reason)
        elif exchange and line in operations.converts_layout and not operations.has(line, *_DOTS):
            reason = "every iteration converts a tile's layout through shared memory"
            yield attribute(model, CauseKind.LAYOUT_CONVERSION, line, exchange, reason)
        elif barriers and operations.has(line, "gpu.barrier", "ttg.barrier"):
            reason = f"every iteration waits at {len(barriers)} barriers"
            yield attribute(model, CauseKind.BARRIER_PER_TRIP, line, barriers, reason)
        if line in operations.wide_integers:
            reason = "every iteration multiplies or divides 64-bit integers; use 32-bit offsets"
            functions = called if operations.has(line, *DIVISIONS) else []
            yield attribute(model, CauseKind.INT64, line, [*integer, *functions], reason, left=_INT32_FRACTION)
        elif line in operations.divides:
            reason = "every iteration divides integers; divide once before the loop, or use a constant divisor"
            yield attribute(model, CauseKind.DIVISION, line, integer, reason)
        elif operations.has(line, *_CONVERSIONS) and not operations.has(line, *_DOTS):
            reason = "every iteration converts element types"
            yield attribute(model, CauseKind.TYPE_CONVERSION, line, [s for s in integer if s not in exchange], reason)


def _dots(model: LaunchModel) -> Iterator[Attribution]:
    operations = model.operations
    for line, steps in group_by_line(model, lambda step: operations.has(step.source_place, *_DOTS)).items():
        operand_lines = operations.dot_operands.get(line, frozenset())
        operand_steps = [
            step
            for step in model.steps
            if step.source_place in operand_lines and step.kind in _SHARED and model.is_in_loop(step)
        ]
        if not any(step.kind == "tensor" for step in steps):
            kinds = {kind for step in steps for kind, _ in step.lane_flop}
            if "fp32" in kinds:
                reason = "the fp32 dot runs on the FMA pipe; input_precision='tf32' uses the matrix unit"
                yield attribute(model, CauseKind.FP32_DOT, line, [*steps, *operand_steps], reason, left=1 / _TF32_GAIN)
        elif line in operations.wide_dots:
            wide, narrow = operations.wide_dots[line]
            used = {step.index: 0.5 for step in (*steps, *operand_steps) if step.kind in (*_SHARED, "tensor")}
            # 16-bit operands are read by LDSM in either order, without conflicts
            sample = without_conflicts(without_work(model.sample, used), list(used))
            share = model.share_of(sample)
            reason = f"the dot multiplies {wide}, but its operands are loaded as {narrow}; multiply {narrow}"
            weight = model.instruction_share(list(used)) if share is None else share
            yield Attribution(CauseKind.WIDE_DOT, line, share, weight, reason)


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
    least = min((fractions.get(s.index, 1.0) for s in model.steps if s.kind in ("global_load", "copy")), default=1.0)
    if least < 1 and is_small:
        for step in model.steps:
            if model.is_in_loop(step) and step.kind not in _MEMORY[:5]:
                fractions[step.index] = max(least, _TILE_FRACTION)
    elif tile[2] <= _SMALL_DEPTH:
        fractions = {step.index: 0.5 for step in model.steps if model.is_in_loop(step) and step.kind not in _MEMORY}
    else:
        return
    lines = [line for line, names in model.operations.operations.items() if not names.isdisjoint(_DOTS)]
    share = model.share_of(without_work(sample, fractions))
    rows, columns, depth = tile
    reason = f"a tile of {rows}×{columns}×{depth} reuses each loaded element too little; use larger tiles"
    weight = model.instruction_share(list(fractions)) / 2 if share is None else share
    yield Attribution(CauseKind.SMALL_TILE, min(lines, default=None), share, weight, reason)


def _masks(model: LaunchModel) -> Iterator[Attribution]:
    operations = model.operations
    compares = group_by_line(
        model, lambda step: model.is_in_loop(step) and step.opcode.startswith(_MASKING) and step.kind not in _MEMORY
    )
    for line, steps in compares.items():
        if operations.has(line, "arith.cmpi") and not operations.has(line, "scf.for", *_REDUCTIONS):
            reason = "every iteration computes masks; peel the masked tail, or pad to a multiple of the tile"
            yield attribute(model, CauseKind.MASKS, line, steps, reason)


def _is_shuffle(step: ProgramStep) -> bool:
    return step.opcode.startswith(("SHFL", "REDUX", "ds_swizzle", "ds_bpermute", "v_permlane", "ds_permute"))


def _is_barrier(step: ProgramStep) -> bool:
    return step.kind == "barrier" or step.opcode.startswith(("BAR", "s_barrier"))

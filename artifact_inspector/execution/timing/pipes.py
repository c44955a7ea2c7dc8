"""The unit of a multiprocessor that executes a SASS instruction.

**Source** CUDA C++ Best Practices Guide, "Throughput of Native Arithmetic Instructions"; Nsight Compute
documentation, "Metrics Decoder" (pipelines ALU, FMA, FP16, LSU, Uniform, XU and what they execute).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement, bytes_moved, parse_statement


class Pipe(Enum):
    """A unit that executes instructions."""

    NONE = "none"
    """Handled by the scheduler: branches, barriers, waits."""
    ALU = "alu"
    FMA = "fma"
    MULTIPLY = "multiply"
    """Integer products: half of the FMA lanes."""
    HALF = "half"
    """Packed 16-bit arithmetic."""
    DOUBLE = "double"
    XU = "xu"
    """Transcendentals, conversions, bit counts."""
    UNIFORM = "uniform"
    CONSTANT = "constant"
    """Loads from constant memory, special registers."""
    SHUFFLE = "shuffle"
    SHARED = "shared"
    GLOBAL = "global"
    LOCAL = "local"
    COPY = "copy"
    """From global to shared memory, bypassing registers."""
    BULK = "bulk"
    """Copies by the tensor memory accelerator."""
    TENSOR = "tensor"


_PIPES: Mapping[Pipe, str] = {
    Pipe.FMA: "FADD FMUL FFMA FADD32I FMUL32I FFMA32I FADD2 FMUL2 FFMA2 FSWZADD",
    Pipe.MULTIPLY: "IMAD IMUL IDP IDP4A", Pipe.HALF: "HADD2 HMUL2 HFMA2 HMNMX2 HSET2 HSETP2",
    Pipe.DOUBLE: "DADD DMUL DFMA DSETP DMNMX", Pipe.XU: "MUFU I2F F2I F2F FRND POPC FLO BREV I2I",
    Pipe.CONSTANT: "LDC S2R CS2R ULDC LDCU S2UR", Pipe.SHUFFLE: "SHFL",
    Pipe.SHARED: "LDS STS LDSM STSM ATOMS REDS MOVM", Pipe.GLOBAL: "LDG LD STG ST ATOM ATOMG RED REDG",
    Pipe.LOCAL: "LDL STL", Pipe.COPY: "LDGSTS", Pipe.BULK: "UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED",
    Pipe.NONE: "BRA BRX BRXU JMP CALL RET EXIT BAR BSSY BSYNC BREAK NOP DEPBAR LDGDEPBAR WARPGROUP WARPSYNC "
    "MEMBAR ERRBAR CGAERRBAR FENCE CCTL BMOV YIELD NANOSLEEP SYNCS UTMACMDFLUSH UTMACCTL",
}  # fmt: skip
_BY_OPCODE: Mapping[str, Pipe] = {name: pipe for pipe, names in _PIPES.items() for name in names.split()}


def pipe_of(step: ProgramStep) -> Pipe:
    """The unit that executes an instruction; ALU for opcodes in no table."""
    if step.kind == "tensor":
        return Pipe.TENSOR
    base = step.opcode.partition(".")[0]
    table_pipe = _BY_OPCODE.get(base)
    if table_pipe is not None:
        return table_pipe
    return Pipe.UNIFORM if base.startswith("U") or base == "R2UR" else Pipe.ALU


def bytes_per_lane(step: ProgramStep) -> int:
    """Bytes per lane of a load or store."""
    return bytes_moved(step.opcode)


def wait_effect(step: ProgramStep, pipe: Pipe) -> tuple[SchedulingEffect, int]:
    """What an instruction starts or waits for besides scoreboards, and how many groups the wait leaves."""
    statement = parse_statement(step.text)
    base = statement.base
    if base in _EFFECTS:
        return _EFFECTS[base], 0
    if base == "DEPBAR":
        return SchedulingEffect.WAITS_FOR_COPIES, _last_number(statement)
    if base == "WARPGROUP" and statement.has_modifier("DEPBAR"):
        return SchedulingEffect.WAITS_FOR_PRODUCTS, _last_number(statement)
    if pipe is Pipe.TENSOR and any(operand.name.startswith("gsb") for operand in statement.operands):
        return SchedulingEffect.CLOSES_PRODUCT_GROUP, 0
    if base == "SYNCS" and any(modifier in statement.modifiers for modifier in ("TRYWAIT", "TRANS64")):
        return SchedulingEffect.WAITS_FOR_BULK if statement.has_modifier("TRYWAIT") else SchedulingEffect.NOTHING, 0
    return SchedulingEffect.NOTHING, 0


_EFFECTS: Mapping[str, SchedulingEffect] = {
    "LDGSTS": SchedulingEffect.STARTS_COPY, "LDGDEPBAR": SchedulingEffect.CLOSES_COPY_GROUP,
    "BAR": SchedulingEffect.CTA_BARRIER, "UTMALDG": SchedulingEffect.STARTS_BULK_COPY,
}  # fmt: skip


def _last_number(statement: SassStatement) -> int:
    numbers = [operand.value for operand in statement.operands if operand.kind is SassOperandKind.NUMBER]
    return numbers[-1] if numbers else 0

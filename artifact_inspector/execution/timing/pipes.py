"""The unit of a multiprocessor that executes a SASS instruction.

**Source** CUDA C++ Best Practices Guide, "Throughput of Native Arithmetic Instructions"; Nsight Compute
documentation, "Metrics Decoder" (pipelines ALU, FMA, FP16, LSU, Uniform, XU and what they execute).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from artifact_inspector.execution.interpreter.program import Step
from artifact_inspector.execution.timing.walking import Does
from artifact_inspector.formats.sass.statement import OperandKind, Statement, bytes_moved, parse_statement


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
    Pipe.MULTIPLY: "IMAD IMUL IDP IDP4A",
    Pipe.HALF: "HADD2 HMUL2 HFMA2 HMNMX2 HSET2 HSETP2",
    Pipe.DOUBLE: "DADD DMUL DFMA DSETP DMNMX",
    Pipe.XU: "MUFU I2F F2I F2F FRND POPC FLO BREV I2I",
    Pipe.CONSTANT: "LDC S2R CS2R ULDC LDCU S2UR",
    Pipe.SHUFFLE: "SHFL",
    Pipe.SHARED: "LDS STS LDSM STSM ATOMS REDS MOVM",
    Pipe.GLOBAL: "LDG LD STG ST ATOM ATOMG RED REDG",
    Pipe.LOCAL: "LDL STL",
    Pipe.COPY: "LDGSTS",
    Pipe.BULK: "UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED",
    Pipe.NONE: "BRA BRX BRXU JMP CALL RET EXIT BAR BSSY BSYNC BREAK NOP DEPBAR LDGDEPBAR WARPGROUP WARPSYNC "
    "MEMBAR ERRBAR CGAERRBAR FENCE CCTL BMOV YIELD NANOSLEEP SYNCS UTMACMDFLUSH UTMACCTL",
}
_BY_OPCODE: Mapping[str, Pipe] = {name: pipe for pipe, names in _PIPES.items() for name in names.split()}


def pipe_of(step: Step) -> Pipe:
    """The unit that executes an instruction; ALU for opcodes in no table."""
    if step.kind == "tensor":
        return Pipe.TENSOR
    base = step.opcode.partition(".")[0]
    found = _BY_OPCODE.get(base)
    if found is not None:
        return found
    return Pipe.UNIFORM if base.startswith("U") or base == "R2UR" else Pipe.ALU


def moved_bytes(step: Step) -> int:
    """Bytes per lane of a load or store."""
    return bytes_moved(step.opcode)


def what_it_does(step: Step, pipe: Pipe) -> tuple[Does, int]:
    """What an instruction starts or waits for besides scoreboards, and how many groups the wait leaves."""
    statement = parse_statement(step.text)
    base = statement.base
    if base in _DOES:
        return _DOES[base], 0
    if base == "DEPBAR":
        return Does.AWAITS_COPIES, _last(statement)
    if base == "WARPGROUP" and statement.has("DEPBAR"):
        return Does.AWAITS_PRODUCTS, _last(statement)
    if pipe is Pipe.TENSOR and any(operand.name.startswith("gsb") for operand in statement.operands):
        return Does.CLOSES_PRODUCTS, 0
    if base == "SYNCS" and any(word in statement.modifiers for word in ("TRYWAIT", "TRANS64")):
        return Does.AWAITS_BULK if statement.has("TRYWAIT") else Does.NOTHING, 0
    return Does.NOTHING, 0


_DOES: Mapping[str, Does] = {
    "LDGSTS": Does.COPIES,
    "LDGDEPBAR": Does.CLOSES_COPIES,
    "BAR": Does.MEETS,
    "UTMALDG": Does.COPIES_BULK,
}


def _last(statement: Statement) -> int:
    numbers = [operand.value for operand in statement.operands if operand.kind is OperandKind.NUMBER]
    return numbers[-1] if numbers else 0

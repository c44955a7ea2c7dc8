"""SASS semantics: a function of nvdisasm's text as a program.

`SEMANTICS` has one row for each opcode, for sm_75 to sm_120. The uniform form of an opcode (`UIADD3`)
computes the same for a warp. An opcode without a row writes unknown results and is listed.

**Source** CUDA Binary Utilities, "Instruction Set Reference" (names).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import (
    MALFORMED_OPERAND_ERRORS,
    DecodedProgram,
    ProgramStep,
    StepKind,
)
from artifact_inspector.execution.interpreter.reconvergence import block_ranges, reconvergence_steps
from artifact_inspector.execution.interpreter.swap_outcomes import assume_swaps
from artifact_inspector.execution.sass.approximation import build_approximation
from artifact_inspector.execution.sass.control import CONTROL, INSTRUCTION_BYTES, NO_OPS, branch_to
from artifact_inspector.execution.sass.cross_lane import LANES
from artifact_inspector.execution.sass.data_steps import with_counting
from artifact_inspector.execution.sass.double import DOUBLE
from artifact_inspector.execution.sass.float import FLOAT
from artifact_inspector.execution.sass.float_conversions import FLOAT_CONVERSIONS
from artifact_inspector.execution.sass.half import HALF
from artifact_inspector.execution.sass.integer import INTEGER
from artifact_inspector.execution.sass.logic import LOGIC
from artifact_inspector.execution.sass.mbarrier_waits import WAITS
from artifact_inspector.execution.sass.memory import MEMORY
from artifact_inspector.execution.sass.operands import LITERALS, RunBuilder, StepRun, is_zero_register, split_words
from artifact_inspector.execution.sass.products import PRODUCTS
from artifact_inspector.execution.sass.retry_loops import find_retry_tests
from artifact_inspector.execution.sass.tma import COPIES
from artifact_inspector.execution.sass.warpgroup_products import WARPGROUP_PRODUCTS
from artifact_inspector.formats.sass import parser as language
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement, parse_statement
from artifact_inspector.model import Function, Instruction, MatrixOp, Module

SEMANTICS: Mapping[str, RunBuilder] = {
    **INTEGER, **LOGIC, **FLOAT, **FLOAT_CONVERSIONS, **DOUBLE, **HALF, **PRODUCTS, **MEMORY, **COPIES, **CONTROL,
    **LANES, **WAITS, **WARPGROUP_PRODUCTS, "MUFU": build_approximation,
}  # fmt: skip
"""Opcode without modifiers → builder of its run."""

_BRANCHES = frozenset(("BRA", "JMP", "CALL"))
_EXITS = ("EXIT", "RET")
_INDIRECT = ("BRX", "JMX", "CALL", "RET")
"""Opcode prefixes whose target is not in the code."""
_UNGUARDED = frozenset(("BRA", "JMP", "BRX", "BRXU", "RET", "EXIT", "CALL"))
_SLOW_PATH = re.compile(r"CALL\.\S+ .*__cuda_\w+_f(32|64)_\w*(full|path)")
"""A call for operands near the ends of the exponent's range: `$__cuda_sm20_div_rn_f64_full`."""
_NEAR = 10
"""Instructions from the branch around such a call to the call, at most: moves of its operands."""
_STEP_KINDS: Mapping[str, StepKind] = {
    "LDG": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store", "LDGSTS": "copy",
    "RED": "global_reduction", "REDG": "global_reduction", "ATOM": "global_atomic", "ATOMG": "global_atomic",
    "LDS": "shared_load", "STS": "shared_store", "STSM": "matrix_store", "LDSM": "matrix_load",
    "ATOMS": "shared_atomic", "REDS": "shared_atomic", "LDL": "local_load", "STL": "local_store",
    "UTMALDG": "tensor_load", "UTMASTG": "tensor_store", "UTMAREDG": "tensor_store", "UBLKCP": "tensor_load",
    "BAR": "barrier", "WARPSYNC": "warp_sync",
}  # fmt: skip
_FLOP: Mapping[str, tuple[str, int]] = {
    "FADD": ("fp32", 1), "FMUL": ("fp32", 1), "FFMA": ("fp32", 2), "FADD2": ("fp32", 2), "FMUL2": ("fp32", 2),
    "FFMA2": ("fp32", 4), "FADD32I": ("fp32", 1), "FMUL32I": ("fp32", 1), "FFMA32I": ("fp32", 2),
    "DADD": ("fp64", 1), "DMUL": ("fp64", 1), "DFMA": ("fp64", 2), "HADD2": ("fp16", 2), "HMUL2": ("fp16", 2),
    "HFMA2": ("fp16", 4),
}  # fmt: skip
"""Floating-point operations per lane; a multiply-add counts as two."""
_MATRIX_TYPES: Mapping[str, str] = {
    "f16": "fp16", "bf16": "bf16", "tf32": "tf32", "f64": "fp64", "e4m3": "fp8", "e5m2": "fp8", "s8": "int8",
    "u8": "int8", "s4": "int4", "u4": "int4", "b1": "b1", "e2m1": "fp4", "e2m3": "fp6", "e3m2": "fp6",
}  # fmt: skip


def arch_number(module: Module) -> int:
    """The architecture number of SASS; 90 if it is not stated."""
    return int("".join(c for c in module.attributes.get("target", "sm_90") if c in "0123456789")[:4] or 90)


def read_program(
    module: Module,
    kernel: str,
    *,
    constants: Mapping[int, bytes] | None = None,
    parameters: Sequence[tuple[int, int]] = (),
) -> DecodedProgram:
    """A kernel's machine code, ready to run.

    Args:
        module: as the reader of SASS returns it.
        kernel: the function; the only one if none has that name.
        constants: constant banks from the binary.
        parameters: offset in constant bank 0 and bytes of each parameter, in order.
    """
    functions, arch = module.functions, arch_number(module)
    at = next((at for at, function in enumerate(functions) if function.name == kernel), 0)
    called = takewhile(lambda function: function.name.startswith("$"), functions[at + 1 :])  # in its section
    section = (functions[at], *called)
    instructions = [instruction for function in section for instruction in function.instructions]
    targets = _branch_targets(section)
    jumps = [at for at, instruction in enumerate(instructions) if instruction.opcode.startswith(_INDIRECT)]
    calls = [at for at, instruction in enumerate(instructions) if _SLOW_PATH.match(instruction.text)]
    usual = {at for call in calls for at in range(call - _NEAR, call) if targets.get(at, 0) > call}
    steps = [
        _decode_step(at, one, module, targets.get(at), is_usual=at in usual) for at, one in enumerate(instructions)
    ]
    if any("CAS" in instruction.opcode for instruction in section[0].instructions):
        assume_swaps(steps, FunctionCode(section[0], module, language.FORMAT), range(len(steps)), find_retry_tests)
    blocks = block_ranges(section[0], _EXITS) if len(section) == 1 else ()
    program = DecodedProgram(
        section[0].name,
        tuple(steps),
        {step.address: step.index for step in steps},
        constants=dict(constants or {}),
        parameters=tuple(parameters),
        arch_number=arch,
        target=f"sm_{arch}",
        code_bytes=len(steps) * INSTRUCTION_BYTES,
        reconvergence_steps=reconvergence_steps(section, _EXITS),
        blocks=() if jumps else blocks,
    )
    has_unknown_way = not blocks or not {*jumps} <= targets.keys() & {block.stop - 1 for block in blocks}
    return program if has_unknown_way else with_counting(program, instructions, blocks)


def _branch_targets(section: Sequence[Function]) -> dict[int, int]:
    """Branch or call → its target instruction."""
    targets: dict[int, int] = {}
    label_positions: dict[str, int] = {}
    start = 0
    for function in section:
        labels = {block.label: start + block.start for block in function.blocks if block.label}
        label_positions |= {function.name: start, **labels}
        for block in function.blocks:
            if block.start == block.stop:
                continue
            last_instruction = block.stop - 1
            statement = parse_statement(function.instructions[last_instruction].text)
            label_operands = [operand for operand in statement.operands if operand.kind is SassOperandKind.LABEL]
            if statement.base in _BRANCHES and label_operands and label_operands[-1].name in labels:
                targets[start + last_instruction] = labels[label_operands[-1].name]
            elif statement.base in ("BRA", "JMP") and block.successors:
                targets[start + last_instruction] = start + function.blocks[block.successors[0]].start
        start += len(function.instructions)
    instructions = (instruction for function in section for instruction in function.instructions)
    for last_instruction, instruction in enumerate(instructions):
        if last_instruction not in targets and instruction.opcode.startswith("CALL"):
            operands = parse_statement(instruction.text).operands
            name = operands[-1].name.strip("`()") if operands else ""
            if name in label_positions:
                targets[last_instruction] = label_positions[name]
    return targets


def _decode_step(
    at: int, instruction: Instruction, module: Module, target: int | None, *, is_usual: bool = False
) -> ProgramStep:
    statement = parse_statement(instruction.text)
    base = statement.base
    run, is_supported = _build_run(statement, instruction, target)
    run = branch_to(statement, target, is_usual=True) if is_usual else run
    guard = None if statement.guard in (None, "PT", "UPT") and not statement.is_guard_negated else statement.guard
    matrix = language.FORMAT.matrix(instruction, module)
    return ProgramStep(
        at,
        at * INSTRUCTION_BYTES,
        statement.opcode,
        instruction.text,
        instruction.line,
        run,
        guard=guard,
        guard_is_negated=statement.is_guard_negated,
        is_uniform=base in _UNIFORM_MEMORY or (base.startswith("U") and base not in MEMORY and base not in COPIES),
        runs_unguarded=base in _UNGUARDED and not (base == "EXIT" and guard is not None),
        lane_flop=_lane_flop(statement, matrix),
        matrix_types=None if matrix is None else (matrix.operands[0], matrix.types.partition("→")[2]),
        accepts_affine=base.removeprefix("U") in _AFFINE_OPCODES,
        ignores_inactive_lanes=base != "SHFL",
        kind=_step_kind(statement),
        is_supported=is_supported,
        location=instruction.location,
    )


_UNIFORM_MEMORY = ("S2UR", "CS2UR", "ULDC", "LDCU")


def _build_run(statement: SassStatement, instruction: Instruction, target: int | None) -> tuple[StepRun, bool]:
    """The run of a statement, and whether the opcode is supported."""
    base = statement.base
    if base in _BRANCHES:
        return branch_to(statement, target), True
    if base in NO_OPS or (base == "LDTM"):
        results = instruction.operands.results
        return (_write_unknown(results, f"the result of {statement.opcode}") if results else lambda _: None), True
    builder = SEMANTICS.get(base) or (SEMANTICS.get(base[1:]) if base.startswith("U") else None)
    if builder is not None:
        try:
            return builder(statement), True
        except MALFORMED_OPERAND_ERRORS:
            pass
    results = instruction.operands.results
    if "MMA" in base or base in _DATA_OPCODES or base.removeprefix("U") in _DATA_OPCODES:
        return _write_unknown(results, f"the result of {statement.opcode}"), True
    return _write_unknown(results, f"unsupported opcode {statement.opcode}"), False


_DATA_OPCODES = split_words("""
    HSET2 FHADD FHFMA F2IP I2I I2IP DMNMX IDP IDP4A VHMNMX FSWZADD QSPC QADD4 QMUL4 QFMA4 LDT LDTM TEX TLD SULD
    """)
"""Instructions on data: their results are deliberately not computed."""


_AFFINE_OPCODES = split_words("""
    IADD IADD3 VIADD IADD32I IMAD IMUL SHF SHL LEA LOP LOP3 ISETP MOV SEL LDG LD STG ST LDGSTS LDL STL LDS STS
    LDSM
    """)
"""Opcodes that accept affine values: those that compute addresses, and those that access memory."""


def _write_unknown(results: tuple[str, ...], reason: str) -> StepRun:
    def run(machine: Machine) -> None:
        for name in results:
            machine.write_register(name, machine.unknown_result(name, reason))

    return run


def _step_kind(statement: SassStatement) -> StepKind:
    base = statement.base
    if ("MMA" in base and not base.startswith("WARP")) or statement.has_modifier("MMA"):
        return "tensor"
    return _STEP_KINDS.get(base, "")


def _lane_flop(statement: SassStatement, matrix: MatrixOp | None) -> tuple[tuple[str, int], ...]:
    """Floating-point operations per lane by type; a matrix operation is divided among its lanes."""
    if matrix is not None:
        issuing_lanes = 128 if matrix.issuer == "warpgroup" else 32
        name = matrix.types.partition("×")[0]
        return ((_MATRIX_TYPES.get(name, name), matrix.flop // issuing_lanes),)
    opcode_flop = _FLOP.get(statement.base)
    if opcode_flop is None:
        return ()
    sources = [o for o in statement.operands[1:] if o.kind is not SassOperandKind.PREDICATE]
    if all(is_zero_register(o) or o.kind in LITERALS for o in sources):
        return ()  # it loads a constant
    if statement.base == "HADD2" and any(is_zero_register(source) for source in sources):
        return ()  # it is a conversion
    name, count = opcode_flop
    return ((("bf16" if any("BF16" in m for m in statement.modifiers) else name), count),)

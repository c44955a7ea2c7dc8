"""AMDGCN semantics: a kernel's text as a program.

Each action that `formats` assigns to an opcode has one row in `SEMANTICS`. gfx90a, gfx942, gfx950, RDNA 3 and
RDNA 4 differ in spelling only. An opcode without an action writes unknown results and is listed. None of this
was validated on hardware.

**Source** LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.execution.amdgcn.control import CONTROL, branch_to
from artifact_inspector.execution.amdgcn.cross_lane import LANES
from artifact_inspector.execution.amdgcn.data_steps import with_counting
from artifact_inspector.execution.amdgcn.integer import INTEGER
from artifact_inspector.execution.amdgcn.lane_spills import move_spilled_lanes
from artifact_inspector.execution.amdgcn.logic import LOGIC, LOGICAL
from artifact_inspector.execution.amdgcn.memory import MEMORY
from artifact_inspector.execution.amdgcn.operands import (
    RunBuilder,
    StepRun,
    is_scalar,
    scalar_or_vector_run,
    under_exec,
)
from artifact_inspector.execution.amdgcn.retry_loops import find_retry_tests
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import (
    MALFORMED_OPERAND_ERRORS,
    DecodedProgram,
    ProgramStep,
    StepKind,
)
from artifact_inspector.execution.interpreter.reconvergence import block_ranges, reconvergence_steps
from artifact_inspector.execution.interpreter.swap_outcomes import assume_swaps
from artifact_inspector.execution.interpreter.values import UnknownValue, is_entirely_unknown
from artifact_inspector.formats.amdgcn import parser as language
from artifact_inspector.formats.amdgcn.kernel import InitialState
from artifact_inspector.formats.amdgcn.operations import Action, float_operations, semantics_of
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement, parse_statement
from artifact_inspector.model import EventKind, Function, Instruction, Module

SEMANTICS: Mapping[Action, RunBuilder] = {**INTEGER, **LOGIC, **LANES, **MEMORY, **CONTROL}
"""Action → builder of its run."""

_STEP_KINDS: Mapping[EventKind, StepKind] = {
    EventKind.GLOBAL_LOAD: "global_load", EventKind.ASYNC_COPY: "copy",
    EventKind.GLOBAL_STORE: "global_store",
    EventKind.SHARED_LOAD: "shared_load", EventKind.SHARED_STORE: "shared_store", EventKind.MATRIX: "tensor",
    EventKind.BARRIER: "barrier", EventKind.LOCAL_LOAD: "local_load", EventKind.LOCAL_STORE: "local_store",
    EventKind.SCALAR_LOAD: "scalar_load",
}  # fmt: skip
_BRANCH_ACTIONS = (Action.BRANCH, Action.BRANCH_IF, Action.SET_PC)
_SCRATCH_ACTIONS = {EventKind.LOCAL_LOAD: Action.LOAD_SCRATCH, EventKind.LOCAL_STORE: Action.STORE_SCRATCH}
_MATRIX_TYPES: Mapping[str, str] = {
    "f16": "fp16", "bf16": "bf16", "xf32": "tf32", "f32": "fp32", "f64": "fp64", "fp8": "fp8", "bf8": "fp8",
    "i8": "int8", "iu8": "int8", "iu4": "int4", "fp4": "fp4", "fp6": "fp6", "bf6": "fp6", "f8": "fp8",
}  # fmt: skip


def read_program(module: Module, kernel: str, beginning: InitialState, line: int) -> DecodedProgram:
    """A kernel's machine code, ready to run.

    Args:
        module: as the reader of AMDGCN returns it.
        kernel: the function; the first one if none has that name.
        beginning: initial state of the kernel.
        line: bytes of an L1 cache line.
    """
    function = next((f for f in module.functions if f.name == kernel), module.functions[0])
    steps: list[ProgramStep] = []
    instructions, wave = move_spilled_lanes(function.instructions), beginning.wavefront_size
    index = {}
    for position, instruction in enumerate(instructions):
        has_same_line = position > 0 and instruction.line == instructions[position - 1].line
        index[position] = len(steps)
        step = _decode_step(len(steps), instruction, module, wave, None)
        if instruction is not function.instructions[position]:
            is_read = instruction.opcode.startswith("v_readlane")
            run = under_exec(partial(_run_for_group, step.run)) if is_read else step.run
            step = replace(step, opcode=instruction.opcode, text=function.instructions[position].text, run=run)
        if has_same_line and instruction.opcode.startswith("v_dual_"):
            steps[-1] = _pair_dual_issue(steps[-1], step)
        else:
            steps.append(step)
    index[len(instructions)] = len(steps)
    targets = _branch_targets(function)
    for position, target in targets.items():
        steps[index[position]] = _decode_step(index[position], instructions[position], module, wave, index[target])
    if any("cmpswap" in instruction.opcode for instruction in instructions):
        assume_swaps(steps, FunctionCode(function, module, language.FORMAT), index, find_retry_tests)
    entry_step = index[_entry_instruction(function, targets)] if beginning.skips_preload_prologue else 0
    program = DecodedProgram(
        function.name,
        tuple(steps),
        {step.address: step.index for step in steps},
        warp_size=wave,
        parameters=tuple((a.offset, a.size) for a in beginning.arguments if not a.is_hidden),
        shared_bytes=beginning.lds_bytes,
        target=module.attributes.get("target", "gfx942"),
        request_bytes=line,
        entry_step=entry_step,
        reconvergence_steps=reconvergence_steps((function,), ("s_endpgm",), index.__getitem__),
    )
    return with_counting(program, instructions, block_ranges(function, ("s_endpgm",), index.__getitem__))


def _run_for_group(run: StepRun, machine: Machine) -> bool | None:
    machine.active_mask, machine.undecided_lanes = machine.group.mask, None
    return run(machine)


def _branch_targets(function: Function) -> dict[int, int]:
    """Branch → its target instruction."""
    labels = {block.label: block.start for block in function.blocks if block.label}
    targets = {}
    for block in function.blocks:
        if block.start == block.stop:
            continue
        last_instruction = block.stop - 1
        statement = parse_statement(function.instructions[last_instruction].text)
        meaning = semantics_of(statement.base)
        if meaning is None or meaning.action not in _BRANCH_ACTIONS:
            continue
        name = statement.operands[-1].names[0] if statement.operands and statement.operands[-1].names else ""
        successor_starts = [function.blocks[number].start for number in block.successors]
        if name in labels:
            targets[last_instruction] = labels[name]
        elif len(successor_starts) > 1:
            targets[last_instruction] = next(
                (successor for successor in successor_starts if successor != block.stop), block.stop
            )
        elif successor_starts:
            targets[last_instruction] = successor_starts[0]
    return targets


def _entry_instruction(function: Function, targets: Mapping[int, int]) -> int:
    """The first instruction of a kernel with preloaded arguments: after the compatibility prologue, if any.

    That prologue loads the arguments and branches to the code, or traps (Triton 3.2). Newer GPUs have none.

    Source:
        LLVM, "User Guide for AMDGPU Backend": "Preloaded Kernel Arguments".
    """
    for at, instruction in enumerate(function.instructions):
        base = parse_statement(instruction.text).base
        if base == "s_trap":
            return at + 1
        if base == "s_branch" and at in targets:
            return targets[at]
        if not base.startswith(("s_load_", "s_waitcnt", "s_wait_", "s_nop")):
            return 0
    return 0


def _decode_step(at: int, instruction: Instruction, module: Module, wave: int, target: int | None) -> ProgramStep:
    statement = parse_statement(instruction.text)
    run, is_supported = _build_run(statement, instruction, target)
    meaning = semantics_of(statement.base)
    is_mask = meaning is not None and meaning.action in LOGICAL and meaning.bits == 64
    return ProgramStep(
        at,
        at,
        statement.opcode,
        instruction.text,
        instruction.line,
        run,
        lane_flop=_lane_flop(statement, instruction, module, wave),
        accepts_affine=meaning is not None and meaning.action in _AFFINE_ACTIONS and not is_mask,
        kind=_step_kind(statement, instruction),
        is_supported=is_supported,
        location=instruction.location,
    )


_AFFINE_ACTIONS = {*INTEGER, *LOGIC, *MEMORY} - {Action.LOAD_SCALAR, Action.LOAD_SCALAR_BUFFER, Action.SAVE_EXEC}
"""Actions that accept affine values: those that compute addresses, and those that access memory by lanes."""


def _step_kind(statement: AmdgcnStatement, instruction: Instruction) -> StepKind:
    if instruction.kind is EventKind.ATOMIC:
        return "shared_atomic" if statement.base.startswith("ds_") else "global_atomic"
    return _STEP_KINDS.get(instruction.kind, "")


def _build_run(statement: AmdgcnStatement, instruction: Instruction, target: int | None) -> tuple[StepRun, bool]:
    """The run of a statement, and whether the opcode is supported."""
    meaning = semantics_of(statement.base)
    results = instruction.operands.results
    if meaning is not None and instruction.kind in _SCRATCH_ACTIONS:
        meaning = meaning._replace(action=_SCRATCH_ACTIONS[instruction.kind])
    if meaning is not None and meaning.action is Action.UNTRACKED:
        return _write_unknown(results, f"the result of {statement.opcode}", statement), True
    try:
        if meaning is not None and meaning.action in _BRANCH_ACTIONS:
            return branch_to(meaning, target), True
        if meaning is not None and meaning.action in SEMANTICS:
            return SEMANTICS[meaning.action](statement, meaning), True
    except MALFORMED_OPERAND_ERRORS:
        pass
    return _write_unknown(results, f"unsupported opcode {statement.opcode}", statement), False


def _write_unknown(results: tuple[str, ...], reason: str, statement: AmdgcnStatement) -> StepRun:
    def run(machine: Machine) -> None:
        unknown_value = machine.unknown_value(reason)
        for name in results:
            old = machine.registers.get(name)
            if not is_entirely_unknown(old) or old.missing_inputs != unknown_value.missing_inputs:
                machine.write_register(name, unknown_value)
        if is_scalar(statement):
            machine.write_register("scc", UnknownValue(False, True, unknown_value.missing_inputs))

    return scalar_or_vector_run(statement, run)


def _pair_dual_issue(first: ProgramStep, second: ProgramStep) -> ProgramStep:
    """A dual-issue pair (`v_dual_x … :: v_dual_y …`): both read before either writes."""
    first_destination = next(iter(parse_statement(first.text).operands[0].names), None)

    def run(machine: Machine) -> None:
        old_value = None if first_destination is None else machine.registers.get(first_destination)
        first.run(machine)
        if first_destination is None:
            second.run(machine)
            return
        new_value = machine.registers.get(first_destination)
        if old_value is None:
            machine.registers.pop(first_destination, None)
        else:
            machine.registers[first_destination] = old_value
        machine.active_mask, machine.undecided_lanes = machine.group.mask, None
        lanes = machine.counters.threads_executed[machine.step.index]
        second.run(machine)
        machine.counters.threads_executed[machine.step.index] = lanes
        if new_value is not None:
            machine.registers[first_destination] = new_value

    return ProgramStep(
        first.index, first.address, first.opcode, f"{first.text} :: {second.text}", first.line, run,
        lane_flop=first.lane_flop + second.lane_flop, kind=first.kind,
        is_supported=first.is_supported and second.is_supported, location=first.location,
    )  # fmt: skip


def _lane_flop(
    statement: AmdgcnStatement, instruction: Instruction, module: Module, wave: int
) -> tuple[tuple[str, int], ...]:
    """Floating-point operations per lane by type; a matrix operation is divided among its lanes."""
    matrix = language.FORMAT.matrix(instruction, module)
    if matrix is not None:
        name = matrix.types.partition("×")[0]
        return ((_MATRIX_TYPES.get(name, name), matrix.flop // wave),)
    return float_operations(statement.base)

"""AMDGCN semantics: a kernel's text as a program, and the state that a launch provides.

Each action that `formats` assigns to an opcode has one row in `SEMANTICS`. gfx90a, gfx942, gfx950, RDNA 3 and
RDNA 4 differ in spelling only. An opcode without an action writes unknown results and is listed. None of this
was validated on hardware.

**Source** LLVM, "User Guide for AMDGPU Backend", "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.control import CONTROL, branch_to
from artifact_inspector.execution.amdgcn.integer import INTEGER
from artifact_inspector.execution.amdgcn.lanes import LANES
from artifact_inspector.execution.amdgcn.logic import LOGIC
from artifact_inspector.execution.amdgcn.memory import MEMORY
from artifact_inspector.execution.amdgcn.operands import Build, Run, on_lanes
from artifact_inspector.execution.interpreter.lanes import FULL, Names, Unknown, Value, is_spoiled
from artifact_inspector.execution.interpreter.meeting import meetings_in
from artifact_inspector.execution.interpreter.program import ODD_OPERANDS, Program, Step
from artifact_inspector.execution.launch import Launch, Tensor, encode
from artifact_inspector.formats.amdgcn import reading as language
from artifact_inspector.formats.amdgcn.kernel import Beginning
from artifact_inspector.formats.amdgcn.operations import Action, meaning_of, work_of
from artifact_inspector.formats.amdgcn.statement import Statement, parse_statement
from artifact_inspector.model import EventKind, Function, Instruction, Module

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

SEMANTICS: Mapping[Action, Build] = {**INTEGER, **LOGIC, **LANES, **MEMORY, **CONTROL}
"""Action → builder of its run."""

ARGUMENTS = 0x6000_0000_0000
"""Base address of the kernel argument segment, chosen below every tensor."""

_KINDS: Mapping[EventKind, str] = {
    EventKind.GLOBAL_LOAD: "global_load", EventKind.ASYNC_COPY: "copy",
    EventKind.GLOBAL_STORE: "global_store",
    EventKind.SHARED_LOAD: "shared_load", EventKind.SHARED_STORE: "shared_store", EventKind.MATRIX: "tensor",
    EventKind.BARRIER: "barrier", EventKind.LOCAL_LOAD: "local_load", EventKind.LOCAL_STORE: "local_store",
    EventKind.SCALAR_LOAD: "scalar_load",
}  # fmt: skip
_GO = (Action.BRANCH, Action.BRANCH_IF, Action.GO_TO)
_SCRATCH = {
    EventKind.LOCAL_LOAD: Action.LOAD_SCRATCH,
    EventKind.LOCAL_STORE: Action.STORE_SCRATCH,
}
_TYPES: Mapping[str, str] = {
    "f16": "fp16", "bf16": "bf16", "xf32": "tf32", "f32": "fp32", "f64": "fp64", "fp8": "fp8", "bf8": "fp8",
    "i8": "int8", "iu8": "int8", "iu4": "int4", "fp4": "fp4", "fp6": "fp6", "bf6": "fp6", "f8": "fp8",
}  # fmt: skip


def read_program(module: Module, kernel: str, beginning: Beginning, line: int) -> Program:
    """A kernel's machine code, ready to run.

    Args:
        module: as the reader of AMDGCN returns it.
        kernel: the function; the first one if none has that name.
        beginning: initial state of the kernel.
        line: bytes of an L1 cache line.
    """
    function = next((f for f in module.functions if f.name == kernel), module.functions[0])
    steps: list[Step] = []
    instructions = function.instructions
    index = {len(instructions): 0}
    for at, instruction in enumerate(instructions):
        second = (
            at and instruction.line == instructions[at - 1].line and instruction.opcode.startswith("v_dual_")
        )
        index[at] = len(steps) - 1 if second else len(steps)
        if second:
            steps[-1] = _dual(steps[-1], _step(len(steps) - 1, instruction, module, beginning.wave, None))
        else:
            steps.append(_step(len(steps), instruction, module, beginning.wave, None))
    index[len(instructions)] = len(steps)
    targets = _targets(function)
    for at, target in targets.items():
        steps[index[at]] = _step(index[at], instructions[at], module, beginning.wave, index[target])
    start = index[_first(function, targets)] if beginning.starts_behind else 0
    return Program(
        function.name,
        tuple(steps),
        {step.address: step.index for step in steps},
        warp=beginning.wave,
        parameters=tuple((a.offset, a.size) for a in beginning.arguments if not a.is_hidden),
        shared=beginning.shared,
        target=module.attributes.get("target", "gfx942"),
        line=line,
        start=start,
        meets=meetings_in((function,), ("s_endpgm",), index.__getitem__),
    )


def _targets(function: Function) -> dict[int, int]:
    """Branch → its target instruction."""
    labels = {block.label: block.start for block in function.blocks if block.label}
    found = {}
    for block in function.blocks:
        if block.start == block.stop:
            continue
        at = block.stop - 1
        statement = parse_statement(function.instructions[at].text)
        meaning = meaning_of(statement.base)
        if meaning is None or meaning.action not in _GO:
            continue
        name = statement.operands[-1].names[0] if statement.operands and statement.operands[-1].names else ""
        goes = [function.blocks[number].start for number in block.successors]
        if name in labels:
            found[at] = labels[name]
        elif len(goes) > 1:
            found[at] = next((place for place in goes if place != block.stop), block.stop)
        elif goes:
            found[at] = goes[0]
    return found


def _first(function: Function, targets: Mapping[int, int]) -> int:
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


def _step(at: int, instruction: Instruction, module: Module, wave: int, target: int | None) -> Step:
    statement = parse_statement(instruction.text)
    run, understood = _run(statement, instruction, target)
    frames = instruction.location
    return Step(
        at,
        at,
        statement.opcode,
        instruction.text,
        instruction.line,
        None if not frames else (frames[-1].file, frames[-1].line),
        run,
        work=_work(statement, instruction, module, wave),
        kind=_kind(statement, instruction),
        is_understood=understood,
    )


def _kind(statement: Statement, instruction: Instruction) -> str:
    if instruction.kind is EventKind.ATOMIC:
        return "shared_atomic" if statement.base.startswith("ds_") else "global_atomic"
    return _KINDS.get(instruction.kind, "")


def _run(statement: Statement, instruction: Instruction, target: int | None) -> tuple[Run, bool]:
    """The run of a statement, and whether the opcode is supported."""
    meaning = meaning_of(statement.base)
    results = instruction.operands.results
    if meaning is not None and instruction.kind in _SCRATCH:
        meaning = meaning._replace(action=_SCRATCH[instruction.kind])
    if meaning is not None and meaning.action is Action.DATA:
        return _forget(results, f"the result of {statement.opcode}", statement), True
    try:
        if meaning is not None and meaning.action in _GO:
            return branch_to(meaning, target), True
        if meaning is not None and meaning.action in SEMANTICS:
            return SEMANTICS[meaning.action](statement, meaning), True
    except ODD_OPERANDS:
        pass
    return _forget(results, f"unsupported opcode {statement.opcode}", statement), False


def _forget(results: tuple[str, ...], why: str, statement: Statement) -> Run:
    scalar = statement.base.startswith("s_")

    def run(machine: Machine) -> None:
        nothing = machine.unknown(why)
        for name in results:
            held = machine.registers.get(name)
            if held is None or not is_spoiled(held) or held.why != nothing.why:
                machine.write(name, nothing)
        if scalar:
            machine.write("scc", Unknown(False, True, nothing.why))

    return run if scalar else on_lanes(run)


def _dual(first: Step, second: Step) -> Step:
    """A dual-issue pair (`v_dual_x … :: v_dual_y …`): both read before either writes."""
    name = next(iter(parse_statement(first.text).operands[0].names), None)

    def run(machine: Machine) -> None:
        before = None if name is None else machine.registers.get(name)
        first.run(machine)
        if name is None:
            second.run(machine)
            return
        after = machine.registers.get(name)
        if before is None:
            machine.registers.pop(name, None)
        else:
            machine.registers[name] = before
        machine.on, machine.maybe = machine.group.mask, None
        lanes = machine.counts.lanes[machine.step.index]
        second.run(machine)
        machine.counts.lanes[machine.step.index] = lanes
        machine.registers[name] = after

    return Step(
        first.index, first.address, first.opcode, f"{first.text} :: {second.text}", first.line, first.source,
        run,
        work=first.work + second.work, kind=first.kind,
        is_understood=first.is_understood and second.is_understood,
    )  # fmt: skip


def _work(
    statement: Statement, instruction: Instruction, module: Module, wave: int
) -> tuple[tuple[str, int], ...]:
    """Floating-point operations per lane by type; a matrix operation is divided among its lanes."""
    matrix = language.FORMAT.matrix(instruction, module)
    if matrix is not None:
        name = matrix.types.partition("×")[0]
        return ((_TYPES.get(name, name), matrix.flop // wave),)
    return work_of(statement.base)


# ── Launch state ─────────────────────────────────────────────────────────────────────────────────


class Environment:
    """Kernel arguments and initial registers of a kernel.

    Args:
        program: declares the parameters.
        beginning: initial state of the kernel.
        launch: with an address for every tensor.
        parameters: name and value of each parameter, in order; None if it was not given.
        threads: threads of a workgroup.
        names: registry of missing inputs.
    """

    def __init__(
        self,
        program: Program,
        beginning: Beginning,
        launch: Launch,
        parameters: Sequence[tuple[str, Tensor | int | float | bool | None]],
        threads: int,
        names: Names,
    ) -> None:
        self.program, self.beginning, self.launch = program, beginning, launch
        self.threads, self.names = threads, names
        size = max((a.offset + a.size for a in beginning.arguments), default=0)
        self.bytes = bytearray(size)
        self.missing = dict.fromkeys(range(size), "hidden arguments from the runtime")
        given = iter(parameters)
        for argument in beginning.arguments:
            if argument.is_hidden:
                self._hidden(argument.kind, argument.offset, argument.size)
            else:
                name, value = next(given, ("an argument", None))
                self._put(argument.offset, argument.size, name, value)

    def _hidden(self, kind: str, offset: int, size: int) -> None:
        axis = "xyz".find(kind[-1])
        if kind.startswith("hidden_block_count_"):
            self._put(offset, size, kind, self.launch.grid[axis])
        elif kind.startswith("hidden_group_size_"):
            self._put(offset, size, kind, self.threads if axis == 0 else 1)
        elif kind.startswith(("hidden_remainder_", "hidden_global_offset_", "hidden_dynamic_lds_size")):
            self._put(offset, size, kind, 0)

    def _put(self, offset: int, size: int, name: str, value: Any) -> None:
        held = encode(value, size)
        if held is not None:
            self.bytes[offset : offset + size] = held
        for byte in range(offset, offset + size):
            if held is None:
                self.missing[byte] = name
            else:
                self.missing.pop(byte, None)

    def arguments(self, address: int, size: int) -> list[Value] | None:
        """Words of the kernel argument segment; None if the address is outside of it.

        Bytes between arguments and after the last one are padding; nothing depends on them.
        """
        start = address - ARGUMENTS
        if not 0 <= start < max(len(self.bytes), 1):
            return None
        return [self._word(at) for at in range(start, start + max(size, 4), 4)]

    def _word(self, at: int) -> Value:
        name = next((self.missing[byte] for byte in range(at, at + 4) if byte in self.missing), None)
        if name is not None or at >= len(self.bytes):
            held = {byte for a in self.beginning.arguments for byte in range(a.offset, a.offset + a.size)}
            if any(byte in held and byte in self.missing for byte in range(at, at + 4)):
                return self.names.unknown(name or "a kernel argument")
        return int.from_bytes(self.bytes[at : at + 4].ljust(4, b"\0"), "little")

    def lane(self, machine: Machine) -> Any:
        """Lane number within the wave."""
        return (np.arange(machine.threads, dtype=np.int64) % machine.program.warp).reshape(1, -1)

    def begin(self, machine: Machine) -> None:
        """Set the registers that the hardware initializes, and the entry point."""
        registers, beginning = machine.registers, self.beginning
        registers["exec_lo"], registers["exec_hi"] = FULL, FULL if machine.program.warp == 64 else 0
        registers["scc"] = False
        registers["v0"] = np.arange(machine.threads, dtype=np.int64).reshape(1, -1)
        if beginning.kernarg is not None:
            registers[f"s{beginning.kernarg}"] = ARGUMENTS & FULL
            registers[f"s{beginning.kernarg + 1}"] = ARGUMENTS >> 32
        count, first, at = beginning.preloaded
        for word in range(count):
            registers[f"s{at + word}"] = self._word(4 * (first + word))
        x, y, _ = self.launch.grid
        ctas = machine.ctas.reshape(-1, 1)
        places = (ctas % x, ctas // x % y, ctas // (x * y))
        held = [int(place[0, 0]) if len(place) == 1 else place for place in places]
        for axis, name in beginning.workgroup.items():
            registers[name] = held[axis]
        registers["ttmp9"] = held[0]
        wave = np.arange(machine.threads, dtype=np.int64).reshape(1, -1) // machine.program.warp
        registers["ttmp8"] = wave << 25  # wave number in its workgroup; no other bits of ttmp8 are used
        registers["ttmp7"] = held[1] | held[2] << 16
        machine.group.pc = machine.program.start

"""AMDGCN instructions that only compute data, which reaches no address, no mask and no branch; see `sass.data_steps`.

Vector instructions read and write the lanes of EXEC. What is needed in these lanes is overwritten by a write to them,
until EXEC grows: `s_and_saveexec` narrows it and keeps the lanes before, with which `s_or` adds them again.
Three CTAs of `grouped_gemm` on gfx942 take 2.3 s for 9.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from artifact_inspector.execution.amdgcn.logic import LOGICAL
from artifact_inspector.execution.amdgcn.operands import scalar_or_vector_run
from artifact_inspector.execution.interpreter.program import DecodedProgram, ProgramStep
from artifact_inspector.execution.interpreter.reconvergence import BlockRange
from artifact_inspector.execution.interpreter.unneeded_results import StepUse, find_unneeded_results
from artifact_inspector.formats.amdgcn.operations import Action, semantics_of
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement, parse_statement
from artifact_inspector.model import EventKind, Instruction

_EXEC = "exec_lo"
_LOADS = (Action.LOAD_SHARED, Action.LOAD_BUFFER, Action.LOAD_GLOBAL)
_DATA_OF_STORE = {Action.STORE_BUFFER: 0, Action.STORE_GLOBAL: 1}
"""Position of the operand that is stored."""
_CARRIES = (Action.ADD_WITH_CARRY, Action.SUBTRACT_WITH_BORROW, Action.SUBTRACT_FROM_WITH_BORROW)
_SCC_WRITERS = (*LOGICAL, Action.COMPARE, Action.COMPARE_FLOATS, Action.TEST_BIT)
_SCC_READERS = (*_CARRIES, Action.BRANCH_IF, Action.SELECT, Action.CONDITIONAL_MOVE)
_VCC = ("vcc_lo", "vcc_hi")


def with_counting(
    program: DecodedProgram, instructions: Sequence[Instruction], blocks: Sequence[BlockRange]
) -> DecodedProgram:
    """A program and the same without what decides nothing; only itself with swaps, pairs or unknown paths."""
    actions, swaps = [*map(_action_of, instructions, program.steps)], any(step.assumes_swap for step in program.steps)
    if swaps or len(program.steps) != len(instructions) or {Action.CALL, Action.SET_PC} & {*actions}:
        return program
    loads = {at for at, action in enumerate(actions) if action is Action.LOAD_SHARED}
    for keeps_shared in (False, True):
        uses = [
            _use_of(instruction, action, keeps_shared)
            for instruction, action in zip(instructions, actions, strict=True)
        ]
        unneeded = find_unneeded_results(blocks, uses)
        if not keeps_shared and Action.ATOMIC_SHARED not in actions and loads <= unneeded:
            break
    steps = tuple(_count_only(step, actions[step.index]) if step.index in unneeded else step for step in program.steps)
    return replace(program, counting=replace(program, steps=steps, keeps_shared_data=keeps_shared))


def _action_of(instruction: Instruction, step: ProgramStep) -> Action | None:
    """What an instruction does; None for scratch memory, whose words are not followed, and for unknown opcodes."""
    is_scratch = instruction.kind in (EventKind.LOCAL_LOAD, EventKind.LOCAL_STORE)
    meaning = None if is_scratch or not step.is_supported else semantics_of(parse_statement(instruction.text).base)
    return None if meaning is None else meaning.action


def _count_only(step: ProgramStep, action: Action | None) -> ProgramStep:
    """A step that is counted as before and writes no results."""
    run = scalar_or_vector_run(parse_statement(step.text), lambda _machine: None)
    return replace(step, only_counts=True, run=step.run if action in _LOADS else run)


def _use_of(instruction: Instruction, action: Action | None, keeps_shared: bool) -> StepUse:
    statement, (results, reads) = parse_statement(instruction.text), instruction.operands
    if _EXEC in results or action is Action.SAVE_EXEC or "cmpx" in statement.base:
        sources = _exec_sources(statement, action)
        return StepUse((*results, _EXEC), reads, is_optional=False, guard_sources=sources)
    if statement.base.startswith("s_") or action in (Action.READ_LANE, Action.READ_FIRST_LANE):
        use = _scalar_use(results, reads, action, "_vcc" in statement.base)
        return use._replace(guard=_EXEC, unguarded_results=use.results) if action is Action.READ_FIRST_LANE else use
    if action is Action.STORE_SHARED and not keeps_shared:
        return StepUse((), (), statement.operands[0].names, is_optional=False, guard=_EXEC)
    if action in _DATA_OF_STORE:
        at = _DATA_OF_STORE[action]
        address = sum((operand.names for operand in (*statement.operands[:at], *statement.operands[at + 1 :])), ())
        return StepUse((), (), address, is_optional=False, guard=_EXEC)
    if action in _LOADS and results:
        return StepUse(results, (), reads, guard=_EXEC)
    is_lane_wise = action not in (Action.WRITE_LANE, Action.SWAP) and not statement.opcode.endswith(("_dpp", "_dpp8"))
    if statement.base.startswith("v_") and is_lane_wise:
        is_known = action not in (None, Action.UNTRACKED)
        keeps = action is Action.MULTIPLY_ACCUMULATE_FLOATS or "UNUSED_PRESERVE" in statement.modifiers.values()
        carry = _VCC if action in (*_CARRIES, Action.SELECT) and len(statement.operands) < 4 else ()
        masks = tuple(name for name in results if name in _VCC or name[0] == "s") if is_known else ()
        reads = (*reads, *carry, *(results if keeps else ())) if is_known else ()
        return StepUse(results, reads, guard=_EXEC, unguarded_results=masks)
    return StepUse(results, reads, overwrites=False, is_optional=False)


def _scalar_use(results: tuple[str, ...], reads: tuple[str, ...], action: Action | None, tests_vcc: bool) -> StepUse:
    """What a scalar instruction reads and writes, with the registers that its text does not name."""
    reads = (*reads, *(("scc",) if action in _SCC_READERS else ()), *(_VCC if tests_vcc else ()))
    is_optional = action in (*LOGICAL, Action.MOVE, Action.SELECT) and all(
        name in _VCC or (name[0] == "s" and name[1:].isdigit()) for name in results
    )
    first = results[0][1:] if len(results) % 2 else ""
    pair = {f"s{int(first) - 1}": ("",)} if first.isdigit() and int(first) % 2 else {}  # that may keep EXEC
    results = (*results, *(("scc",) if action in _SCC_WRITERS else ()))
    return StepUse(results, reads, is_optional=is_optional, guard_sources=pair)


def _exec_sources(statement: AmdgcnStatement, action: Action | None) -> Mapping[str, tuple[str, ...]]:
    """EXEC, and the registers that keep it, after an instruction → what holds at least its lanes before."""
    names = [operand.names[:1] for operand in statement.operands]
    kind = statement.base.partition("_b")[0]
    if action is Action.SAVE_EXEC:
        return {names[0][0]: (_EXEC,), _EXEC: (_EXEC,) if kind == "s_and_saveexec" else ("",)}
    if "cmpx" in kind or (kind in ("s_and", "s_andn2", "s_and_not1") and names[1] == (_EXEC,)):
        return {_EXEC: (_EXEC,)}
    if kind == "s_or" and names[1] == (_EXEC,) and names[2]:
        return {_EXEC: (_EXEC, *names[2])}
    return {_EXEC: names[1]} if kind == "s_mov" and names[1] else {}

"""Loop-invariant computations in tensor-level IR that every iteration repeats."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.model import COMPUTES, EventKind

_PURE = COMPUTES | {EventKind.LAYOUT_CONVERSION, EventKind.INTEGER, EventKind.MOVE}
"""Kinds whose result depends only on their operands."""


class LoopInvariants:
    """Whether values of a function in SSA form are loop-invariant.

    The result of a load never is: other threads may have stored there.
    """

    def __init__(self, code: FunctionCode, loop: int) -> None:
        self._code = code
        self._blocks = code.flow.loops[loop].blocks
        self._loop_operation = code.blocks[code.flow.loops[loop].header].start - 1
        """The operation before the loop's first block, which passes the loop its variables."""
        self._owners = {
            passed_value.target: passed_value.owner for flows in code.values.flows for passed_value in flows
        }
        self._cache: dict[int, bool] = {}
        """By instruction."""

    def is_invariant(self, index: int) -> bool:
        """True for an instruction whose result is the same in every iteration."""
        pending = [index]
        while pending:
            current = pending[-1]
            if current in self._cache:
                pending.pop()
                continue
            inputs = self._inputs(current)
            if inputs is None:
                self._cache[current] = False
                continue
            missing = [dependency for dependency in inputs if dependency not in self._cache]
            if missing:
                pending += missing
            else:
                self._cache[current] = all(self._cache[dependency] for dependency in inputs)
        return self._cache[index]

    def _inputs(self, index: int) -> list[int] | None:
        """The instructions of the loop that it depends on; None if it may change for another reason."""
        code, values = self._code, self._code.values
        reads = values.reads[index]
        instruction = code.instructions[index]
        if instruction.kind not in _PURE or len(reads) < len(set(instruction.operands.reads)):
            return None  # has a side effect, or reads an induction variable
        if any(tensor_type.is_memory for tensor_type in code.language.tensor_types(instruction, code.module)):
            return None  # shared or tensor memory, which other instructions write
        inputs = []
        for value in reads.values():
            definition = values.definitions.get(value)
            if definition is not None:
                if code.flow.block_of[definition] in self._blocks:
                    inputs.append(definition)
            elif value in self._owners:
                owner = self._owners[value]
                if owner < 0 or owner == self._loop_operation or code.flow.block_of[owner] in self._blocks:
                    return None  # not of control flow around the loop, or before it
        return inputs

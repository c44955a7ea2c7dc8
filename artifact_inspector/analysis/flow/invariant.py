"""Loop-invariant computations in tensor-level IR that every iteration repeats."""

from __future__ import annotations

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import COMPUTES, EventKind, Module

_PURE = COMPUTES | {EventKind.LAYOUT_CONVERSION, EventKind.INTEGER, EventKind.MOVE}
"""Kinds whose result depends only on their operands."""


class Invariants:
    """Whether values of a function in SSA form are loop-invariant.

    The result of a load never is: other threads may have stored there.
    """

    def __init__(self, code: Code, loop: int, module: Module) -> None:
        self._code, self._module = code, module
        self._blocks = code.flow.loops[loop].blocks
        self._own = code.function.blocks[code.flow.loops[loop].header].start - 1
        """The operation before the loop's first block, which passes the loop its variables."""
        self._owners = {handed.target: handed.owner for flows in code.values.flows for handed in flows}
        self._known: dict[int, bool] = {}
        """By instruction."""

    def computes_the_same(self, index: int) -> bool:
        """True for an instruction whose result is the same in every iteration."""
        pending = [index]
        while pending:
            at = pending[-1]
            if at in self._known:
                pending.pop()
                continue
            inputs = self._inputs(at)
            if inputs is None:
                self._known[at] = False
                continue
            missing = [one for one in inputs if one not in self._known]
            if missing:
                pending += missing
            else:
                self._known[at] = all(self._known[one] for one in inputs)
        return self._known[index]

    def _inputs(self, index: int) -> list[int] | None:
        """The instructions of the loop that it depends on; None if it may change for another reason."""
        code, values = self._code, self._code.values
        reads = values.reads[index]
        instruction = code.function.instructions[index]
        if instruction.kind not in _PURE or len(reads) < len(set(instruction.operands.reads)):
            return None  # has a side effect, or reads an induction variable
        if any(found.is_memory for found in code.language.types(instruction, self._module)):
            return None  # shared or tensor memory, which other instructions write
        inputs = []
        for value in reads.values():
            made = values.definitions.get(value)
            if made is not None:
                if code.flow.block_of[made] in self._blocks:
                    inputs.append(made)
            elif value in self._owners and not self._is_handed_outside(self._owners[value]):
                return None
        return inputs

    def _is_handed_outside(self, owner: int) -> bool:
        """True for a value of control flow around the loop or before it."""
        return 0 <= owner != self._own and self._code.flow.block_of[owner] not in self._blocks

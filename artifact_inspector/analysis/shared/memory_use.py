"""The names and live ranges of a function's shared memory.

Source: resolveLiveness and SharedMemoryAliasAnalysis in Triton's lib/Analysis (Allocation.cpp,
Alias.cpp); getEndOperation in MLIR's lib/Analysis/Liveness.cpp.
"""

from __future__ import annotations

from functools import cached_property

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.values import Values
from artifact_inspector.model import Language
from artifact_inspector.model.shared import SharedRole

_NAMES_IT_ANEW = frozenset({SharedRole.BUFFER, SharedRole.VIEW})


class MemoryUse:
    """The readers of each value of a function, and their times."""

    def __init__(self, code: Code, language: Language) -> None:
        self.code = code
        self._language = language
        self._find_partitions()

    @property
    def values(self) -> Values:
        """The function's values. Numbered only for functions that use shared memory."""
        return self.code.values

    @cached_property
    def uses(self) -> dict[int, list[int]]:
        """Value → the instructions that read it."""
        uses: dict[int, list[int]] = {}
        for index, reads in enumerate(self.values.reads):
            for value in reads.values():
                uses.setdefault(value, []).append(index)
        return uses

    @cached_property
    def _handed(self) -> dict[int, list[tuple[int, int]]]:
        """Value → (instruction that passes it on, the value that it becomes there)."""
        handed: dict[int, list[tuple[int, int]]] = {}
        for index, flows in enumerate(self.values.flows):
            for source, target, _, _ in flows:
                handed.setdefault(source, []).append((index, target))
        return handed

    def _find_partitions(self) -> None:
        """The warp-specialised operation and the partition of each block, and where each operation ends."""
        self.partition: dict[int, tuple[int, int]] = {}
        self.ends: dict[int, int] = {}
        function = self.code.function
        operation = -1
        for number, part in enumerate(function.partitions):
            if part.name == "default":
                operation = function.blocks[part.first].start - 1
            for block in range(part.first, part.stop):
                self.partition[block] = (operation, number)
            self.ends[operation] = max(self.ends.get(operation, 0), function.blocks[part.stop - 1].stop - 1)

    def at(self, index: int) -> int:
        """A time for an instruction. An operation with partitions comes after their contents."""
        return 2 * self.ends[index] + 1 if index in self.ends else 2 * index

    def aliases(self, index: int) -> tuple[set[int], list[int]]:
        """The values that refer to an allocation, and the instructions that read one of them."""
        pending = list(self.values.results[index])
        seen = set(pending)
        users: set[int] = set()
        while pending:
            value = pending.pop()
            for user in self.uses.get(value, ()):
                users.add(user)
                instruction = self.code.function.instructions[user]
                if self._language.shared(instruction).role in _NAMES_IT_ANEW:
                    fresh = [v for v in self.values.results[user] if v not in seen]
                    seen.update(fresh)
                    pending += fresh
            for at, target in self._handed.get(value, ()):
                users.add(at)
                if target not in seen:
                    seen.add(target)
                    pending.append(target)
        return seen, sorted(users)

    def live(self, index: int, aliases: set[int]) -> tuple[int, int]:
        """First and last instruction at which an allocation is live under one of its names."""
        first, last = index, index
        for value in aliases:
            birth = self._births.get(value, index)
            first = min(first, birth)
            users = [*self.uses.get(value, ()), *(at for at, _ in self._handed.get(value, ()))]
            last = max((last, *(self._until(birth, user) for user in users)), key=self.at)
        return first, last

    @cached_property
    def _births(self) -> dict[int, int]:
        """Value → the instruction that starts its live range."""
        born = {value: index for index, results in enumerate(self.values.results) for value in results}
        function = self.code.function
        loops = {owner for handed in self.values.flows for _, _, owner, back in handed if back}
        for at, handed in enumerate(self.values.flows):
            for _, target, owner, back in handed:
                if target in born:
                    continue
                if owner < 0:
                    born[target] = function.blocks[-1 - owner].start
                elif owner in loops:
                    born[target] = min(owner + 1, len(function.instructions) - 1)  # the header's argument
                else:
                    born[target] = at if back else max(at, owner)
        return born

    def _until(self, birth: int, user: int) -> int:
        """Last instruction at which a value must be kept for a use.

        A loop around the use, but not around the definition, needs it in every iteration. For earlier
        values, an operation with partitions is a single operation.
        """
        flow = self.code.flow
        operation, _ = self.partition.get(flow.block_of[user], (None, None))
        if operation is not None and birth <= operation:
            user = operation
        outside = set()
        loop = flow.loop_at(birth)
        while loop is not None:
            outside.add(loop)
            loop = flow.loops[loop].parent
        last = user
        loop = flow.loop_at(user)
        while loop is not None and loop not in outside:
            last = max(last, *(self.code.function.blocks[b].stop - 1 for b in flow.loops[loop].blocks))
            loop = flow.loops[loop].parent
        return last

"""The names and live ranges of a function's shared memory.

Source: resolveLiveness and SharedMemoryAliasAnalysis in Triton's lib/Analysis (Allocation.cpp, Alias.cpp);
getEndOperation in MLIR's lib/Analysis/Liveness.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.ssa_values import SsaValues
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.model.shared import SharedRole

_ALIASING_ROLES = frozenset({SharedRole.BUFFER, SharedRole.VIEW})


class SharedMemoryLiveness:
    """The readers of each value of a function, and their times."""

    def __init__(self, code: FunctionCode) -> None:
        self.code, self._language = code, code.language
        self._find_partitions()

    @property
    def values(self) -> SsaValues:
        """The function's values. Numbered only for functions that use shared memory."""
        return self.code.values

    @cached_property
    def _passed_values(self) -> dict[int, list[tuple[int, int]]]:
        """Value → (instruction that passes it on, the value that it becomes there)."""
        flows = enumerate(self.values.flows)
        return group_by_key((passed.source, (index, passed.target)) for index, values in flows for passed in values)

    def _find_partitions(self) -> None:
        """The warp-specialised operation and the partition of each block, and where each operation ends."""
        self.partition: dict[int, tuple[int, int]] = {}
        self.ends: dict[int, int] = {}
        function = self.code.function
        operation = -1
        for number, partition in enumerate(function.partitions):
            if partition.name == "default":
                operation = function.blocks[partition.first].start - 1
            for block in range(partition.first, partition.stop):
                self.partition[block] = (operation, number)
            self.ends[operation] = max(self.ends.get(operation, 0), function.blocks[partition.stop - 1].stop - 1)

    def time_of(self, index: int) -> int:
        """A time for an instruction. An operation with partitions comes after their contents."""
        return 2 * self.ends[index] + 1 if index in self.ends else 2 * index

    def aliases(self, index: int) -> tuple[set[int], list[int]]:
        """The values that refer to an allocation, and the instructions that read one of them."""
        users: set[int] = set()

        def names(value: int) -> Iterator[int]:
            for user in self.values.uses.get(value, ()):
                users.add(user)
                if self._language.shared_use(self.code.instructions[user]).role in _ALIASING_ROLES:
                    yield from self.values.results[user]
            for at, target in self._passed_values.get(value, ()):
                users.add(at)
                yield target

        return set(reachable(self.values.results[index], names)), sorted(users)

    def live_range(self, index: int, aliases: set[int]) -> tuple[int, int]:
        """First and last instruction at which an allocation is live under one of its names."""
        first, last = index, index
        for value in aliases:
            birth = self._definition_points.get(value, index)
            first = min(first, birth)
            users = [*self.values.uses.get(value, ()), *(at for at, _ in self._passed_values.get(value, ()))]
            last = max((last, *(self._last_use(birth, user) for user in users)), key=self.time_of)
        return first, last

    @cached_property
    def _definition_points(self) -> dict[int, int]:
        """Value → the instruction that starts its live range."""
        definition_points = {value: index for index, results in enumerate(self.values.results) for value in results}
        function = self.code.function
        loops = {owner for passed_values in self.values.flows for _, _, owner, back in passed_values if back}
        for at, passed_values in enumerate(self.values.flows):
            for _, target, owner, back in passed_values:
                if target in definition_points:
                    continue
                if owner < 0:
                    definition_points[target] = function.blocks[-1 - owner].start
                elif owner in loops:
                    definition_points[target] = min(owner + 1, len(function.instructions) - 1)  # the header's argument
                else:
                    definition_points[target] = at if back else max(at, owner)
        return definition_points

    def _last_use(self, birth: int, user: int) -> int:
        """Last instruction at which a value must be kept for a use.

        A loop around the use, but not around the definition, needs it in every iteration. For earlier values, an
        operation with partitions is a single operation.
        """
        flow = self.code.flow
        operation, _ = self.partition.get(flow.block_of[user], (None, None))
        if operation is not None and birth <= operation:
            user = operation
        outside = {*flow.enclosing(flow.loop_at(birth))}
        loops = (flow.loops[loop] for loop in flow.enclosing(flow.loop_at(user)) if loop not in outside)
        return max((self.code.blocks[b].stop - 1 for loop in loops for b in loop.blocks), default=user)

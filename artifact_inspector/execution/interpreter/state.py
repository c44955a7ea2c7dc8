"""The state of some CTAs, and the three ways in which it changes hands.

CTAs that diverge take their rows of the state with them, CTAs that reconverge merge theirs, and loop iterations that
run in parallel repeat the rows as if they were further CTAs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import (
    as_plain_array,
    is_affine_worthwhile,
    is_bool_array,
    stack_affine,
)
from artifact_inspector.execution.interpreter.cta_memory import CtaMemory
from artifact_inspector.execution.interpreter.lane_partition import (
    LanePartition,
    LaneSubset,
    Register,
    materialize,
    select_rows,
)
from artifact_inspector.execution.interpreter.values import (
    IntArray,
    Mask,
    Plain,
    UnknownValue,
    Value,
    as_mask,
    data_of,
    in_affine_form,
    missing_inputs_of,
    select_mask_rows,
    unknown_bits_of,
)

_Item = TypeVar("_Item")
_Data = TypeVar("_Data", bound=np.generic)


class LaneGroup:
    """Lanes that execute together, or wait together at a barrier."""

    __slots__ = ("barrier", "lanes", "mask", "pc", "warps")

    def __init__(self, pc: int, mask: Mask, state: MachineState, barrier: str = "") -> None:
        self.pc, self.barrier = pc, barrier
        self.warps, self.lanes = state.count_warps(mask), state.count_lanes(mask)
        self.mask: Mask = True if self.lanes == state.rows * state.threads else mask


@dataclass
class MachineState:
    """Everything that CTAs change by running, except global memory and counters."""

    ctas: IntArray
    """Linear CTA numbers."""
    threads: int
    """Threads of a CTA."""
    warp_size: int
    registers: dict[str, Register] = field(default_factory=dict)
    barriers: dict[str, Mask] = field(default_factory=dict)
    """Convergence barrier → lanes that take part."""
    saved_barriers: dict[str, Mask] = field(default_factory=dict)
    exited: Mask = False
    early_arrivals: dict[str, IntArray] = field(default_factory=dict)
    """CTA barrier → threads of each CTA, or of any, that arrived without waiting."""
    local_memory: CtaMemory = field(default_factory=CtaMemory)
    shared_memory: CtaMemory = field(default_factory=CtaMemory)
    groups: list[LaneGroup] = field(default_factory=list)
    waiting: list[LaneGroup] = field(default_factory=list)
    """Groups that wait at a barrier."""

    @property
    def rows(self) -> int:
        """Number of CTAs."""
        return len(self.ctas)

    @property
    def shape(self) -> tuple[int, int]:
        """CTAs and threads."""
        return len(self.ctas), self.threads

    def count_lanes(self, mask: Mask) -> int:
        """Lanes in a mask."""
        rows, threads = self.shape
        if isinstance(mask, bool):
            return rows * threads if mask else 0
        return int(np.count_nonzero(mask) * (rows // mask.shape[0]) * (threads // mask.shape[1]))

    def count_warps(self, mask: Mask) -> int:
        """Warps with a lane in a mask."""
        if isinstance(mask, bool) or mask.shape[1] == 1:
            return self.count_lanes(mask) // self.warp_size
        warps = mask.reshape(mask.shape[0], self.threads // self.warp_size, self.warp_size).any(axis=2)
        return int(np.count_nonzero(warps) * (self.rows // mask.shape[0]))

    def fork(self, rows: IntArray, replaced: Mapping[str | int, Register] = {}) -> MachineState:
        """The state of some of the CTAs, which may be repeated.

        Args:
            rows: of the CTAs.
            replaced: registers, and addresses of words of local memory, with another value there.
        """

        def select(register: Register, name: str | int) -> Register:
            return replaced[name] if name in replaced else select_rows(register, rows)

        forked = MachineState(
            ctas=self.ctas[rows],
            threads=self.threads,
            warp_size=self.warp_size,
            registers={name: select(register, name) for name, register in self.registers.items()},
            barriers={name: select_mask_rows(mask, rows) for name, mask in self.barriers.items()},
            saved_barriers={name: select_mask_rows(mask, rows) for name, mask in self.saved_barriers.items()},
            exited=select_mask_rows(self.exited, rows),
            early_arrivals={
                name: arrived[rows] if len(arrived) > 1 else arrived for name, arrived in self.early_arrivals.items()
            },
            local_memory=self.local_memory.fork(rows),
            shared_memory=self.shared_memory.fork(rows),
        )
        words = self.local_memory.lane_words
        forked.local_memory.lane_words = {address: materialize(select(words[address], address)) for address in words}
        for own, groups in ((self.groups, forked.groups), (self.waiting, forked.waiting)):
            groups += [LaneGroup(g.pc, select_mask_rows(g.mask, rows), forked, g.barrier) for g in own]
        return forked

    def tile(self, count: int, replaced: Mapping[str | int, Register] = {}) -> MachineState:
        """The state of `count` times as many CTAs, all of them repeated in order; `replaced` as for `fork`."""
        return self.fork(np.tile(np.arange(self.rows), count), replaced)

    @staticmethod
    def merge(states: Sequence[MachineState], uninitialized: Callable[[str], Value]) -> MachineState:
        """The state of the CTAs of all states, in order; each has one group, and all groups are at the same step.

        Args:
            states: with the same words of local memory.
            uninitialized: the value of a register that was not written.
        """
        first = states[0]
        rows = [state.rows for state in states]
        shape = sum(rows), first.threads
        merged = MachineState(
            ctas=np.concatenate([state.ctas for state in states]), threads=first.threads,
            warp_size=first.warp_size,
            registers={
                name: merge_register([uninitialized(name) if v is None else v for v in values], rows, shape)
                for name, values in _by_name([state.registers for state in states])
            },
            barriers=_merge_masks([state.barriers for state in states], rows),
            saved_barriers=_merge_masks([state.saved_barriers for state in states], rows),
            exited=as_mask(_stack([state.exited for state in states], rows)),
            early_arrivals={
                name: _merge_arrivals([np.zeros(1, np.int64) if a is None else a for a in arrivals], rows)
                for name, arrivals in _by_name([state.early_arrivals for state in states])
            },
            shared_memory=_merge_shared([state.shared_memory for state in states], rows),
        )  # fmt: skip
        for address, words in _by_name([state.local_memory.lane_words for state in states]):
            merged.local_memory.lane_words[address] = _merge_values([w for w in words if w is not None], rows, shape)
        mask = as_mask(_stack([state.groups[0].mask for state in states], rows))
        merged.groups.append(LaneGroup(first.groups[0].pc, mask, merged))
        return merged


_Key = TypeVar("_Key")


def _by_name(mappings: Sequence[Mapping[_Key, _Item]]) -> Iterable[tuple[_Key, list[_Item | None]]]:
    """Each name in any of the mappings, and its item in each; None where it is absent."""
    for name in dict.fromkeys(name for mapping in mappings for name in mapping):
        yield name, [mapping.get(name) for mapping in mappings]


def merge_register(registers: Sequence[Register], rows: Sequence[int], shape: tuple[int, int]) -> Register:
    """A register of all CTAs."""
    partitions = [register for register in registers if isinstance(register, LanePartition)]
    is_same = len(partitions) == len(registers) and all(map(partitions[0].has_same_subsets, partitions[1:]))
    if is_same and is_affine_worthwhile(*shape):
        merged = []
        for subsets in zip(*(partition.subsets for partition in partitions), strict=True):
            merged.append(LaneSubset(subsets[0].mask, _merge_values([value for _, value in subsets], rows, shape)))
        return LanePartition(tuple(merged))
    return _merge_values([materialize(register) for register in registers], rows, shape)


def _merge_values(values: Sequence[Value], rows: Sequence[int], shape: tuple[int, int]) -> Value:
    first, uses_affine = values[0], is_affine_worthwhile(*shape)
    if all(value is first for value in values) and not np.ndim(data_of(first)):
        return first
    if uses_affine and (affine_merge := stack_affine(values, rows)) is not None:
        return affine_merge
    data = _stack([as_plain_array(data_of(value)) for value in values], rows)
    if not any(isinstance(value, UnknownValue) for value in values):
        return in_affine_form(data, shape) if uses_affine else data
    unknown_bits: list[Plain] = [unknown_bits_of(value) for value in values]
    if all(isinstance(data_of(value), (bool, np.bool_)) or is_bool_array(data_of(value)) for value in values):
        unknown_bits = [as_mask(bits) for bits in unknown_bits]
    return UnknownValue(data, _stack(unknown_bits, rows), missing_inputs_of(*values))


def _stack(values: Sequence[Plain], rows: Sequence[int]) -> Plain:
    """Numbers or arrays stacked by CTA; one number if all are equal."""
    first = values[0]
    if not any(isinstance(value, np.ndarray) for value in values) and all(value == first for value in values):
        return first
    arrays = [np.atleast_2d(np.asarray(value)) for value in values]
    return (
        first
        if all(len(array) == 1 and np.array_equal(array, arrays[0]) for array in arrays)
        else _rows_of(arrays, rows)
    )


def _rows_of(arrays: Sequence[NDArray[_Data]], rows: Sequence[int]) -> NDArray[_Data]:
    lanes = max(array.shape[1] for array in arrays)
    parts = [np.broadcast_to(array, (count, lanes)) for array, count in zip(arrays, rows, strict=True)]
    return np.ascontiguousarray(np.concatenate(parts))


def _merge_masks(masks: Sequence[dict[str, Mask]], rows: Sequence[int]) -> dict[str, Mask]:
    return {
        name: as_mask(_stack([False if mask is None else mask for mask in named], rows))
        for name, named in _by_name(masks)
    }


def _merge_arrivals(arrivals: Sequence[IntArray], rows: Sequence[int]) -> IntArray:
    if all(len(arrived) == 1 and arrived[0] == arrivals[0][0] for arrived in arrivals):
        return arrivals[0]
    return np.concatenate([np.broadcast_to(arrived, count) for arrived, count in zip(arrivals, rows, strict=True)])


def _merge_shared(memories: Sequence[CtaMemory], rows: Sequence[int]) -> CtaMemory:
    merged = CtaMemory()
    merged.byte_limit = memories[0].byte_limit
    for memory in memories:
        merged.missing_inputs |= memory.missing_inputs
    size = max((memory.content.shape[1] for memory in memories if memory.content is not None), default=0)
    if size:
        planes = [[_padded(plane, size) for plane in (memory.content, memory.known_marks)] for memory in memories]
        is_equal = all(
            len(plane) == 1 and np.array_equal(plane, first)
            for memory_planes in planes
            for plane, first in zip(memory_planes, planes[0], strict=True)
        )
        contents, marks = zip(*planes, strict=True)
        merged.content, merged.known_marks = (
            (contents[0], marks[0]) if is_equal else (_rows_of(contents, rows), _rows_of(marks, rows))
        )
    return merged


def _padded(content: NDArray[np.uint8] | None, size: int) -> NDArray[np.uint8]:
    if content is None:
        return np.zeros((1, size), np.uint8)
    return np.pad(content, ((0, 0), (0, size - content.shape[1])))

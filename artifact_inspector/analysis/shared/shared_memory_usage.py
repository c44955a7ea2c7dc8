"""The bill of a kernel's shared memory: each allocation, its purpose, and whether the sum is right.

It is read from TTGIR: the buffers in its text, and the scratch that operations use while they run, which Triton's
allocator adds (`scratch`). The sum is computed like the allocator does (`allocator`), so that it can be compared with
the `shared` of the metadata to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.analysis.shared.allocator import BufferPlacement, BufferRequest, place_buffers
from artifact_inspector.analysis.shared.live_ranges import SharedMemoryLiveness
from artifact_inspector.analysis.shared.scratch_memory import (
    ScratchRules,
    find_scratch_rules,
    max_scratch_bytes,
    scratch_bytes,
)
from artifact_inspector.model import EventKind, Instruction, Location, SourceLine, TensorType, TritonVersion
from artifact_inspector.model.limits import BUFFERS
from artifact_inspector.model.shared import SharedRole, SharedUse

_SCRATCH_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class Allocation:
    """One allocation of shared memory."""

    bytes: int | None
    """Size with all its buffers and padding; None if it is not zero but unknown."""
    buffers: int
    """Number of tiles: its leading extent if it is indexed, else 1."""
    line: int
    """In TTGIR."""
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    role: str
    """Its purpose, the same text for equal purposes: `operand a of the dot`, `mbarrier`."""
    dot: str | None
    """For an operand: `file.py:line` of its dot, if known."""
    name: str
    """Name of the value in the source; empty if it has none."""
    is_scratch: bool
    """Used by an operation while it runs; not visible in the text."""
    first: int
    """First line of the TTGIR at which it is live."""
    last: int
    offset: int | None
    """Offset chosen by Triton; None unless the bill is exact."""

    @property
    def purpose(self) -> str:
        """Its purpose, with the location of its user."""
        return self.role if self.dot is None else f"{self.role} at {self.dot}"

    @property
    def live(self) -> tuple[int, int]:
        """First and last line of the TTGIR at which it is live."""
        return self.first, self.last


@dataclass(frozen=True, slots=True)
class SharedMemoryUsage:
    """The shared memory of one kernel, and whether it explains the size in the metadata."""

    entries: tuple[Allocation, ...]
    """In text order."""
    peak: int | None
    """Bytes that Triton's allocator needs for the entries; None if the size of one is unknown."""
    declared: int | None
    """Bytes per block in the metadata."""
    note: str
    """The difference, as text; empty if there is none."""

    @property
    def is_accounted(self) -> bool | None:
        """True if the bill explains the metadata to the byte; None if there is nothing to compare."""
        return None if self.declared is None else self.peak == self.declared

    @property
    def unexplained_bytes(self) -> int | None:
        """Declared bytes that no entry explains. Negative if the bill exceeds the declared size."""
        return None if self.declared is None or self.peak is None else self.declared - self.peak


def find_shared_memory_usage(
    codes: Sequence[FunctionCode], declared: int | None, triton: TritonVersion | None = None
) -> SharedMemoryUsage | None:
    """The bill of a TTGIR module; None for one without functions.

    Args:
        codes: all functions of the module, including the kernel.
        declared: `shared` of the metadata.
        triton: `triton_version` of the metadata.
    """
    if not codes:
        return None
    rules = find_scratch_rules(codes[0], triton)
    sizes: dict[str, int | None] = {}
    by_name = {code.function.name: code for code in codes}
    called = {
        name: [
            use.callee
            for index in code.of_kind.get(EventKind.BRANCH, ())
            if (use := code.language.shared_use(code.instructions[index])).callee in by_name
        ]
        for name, code in by_name.items()
    }
    entries: list[Allocation] = []
    peak: int | None = None
    inner = {callee for callees in called.values() for callee in callees}
    for name in _callees_first(called):
        function_entries, sizes[name] = _AllocationReader(by_name[name], rules, sizes).measure()
        entries += function_entries
        if name not in inner:
            peak = sizes[name]
    entries.sort(key=lambda entry: entry.line)
    if peak is None or (declared is not None and peak != declared):
        entries = [replace(entry, offset=None) for entry in entries]
    return SharedMemoryUsage(tuple(entries), peak, declared, _note(entries, peak, declared))


def _callees_first(called: dict[str, list[str]]) -> list[str]:
    """All functions, each after those that it calls. Recursive calls are ignored."""
    order: dict[str, None] = {}
    entered: set[str] = set()
    pending = [(name, False) for name in reversed(called)]
    while pending:
        name, done = pending.pop()
        if done:
            order[name] = None
        elif name not in entered:
            entered.add(name)
            pending.append((name, True))
            pending += [(callee, False) for callee in reversed(called[name])]
    return list(order)


def _note(entries: list[Allocation], peak: int | None, declared: int | None) -> str:
    if peak is None:
        unknown = [f"{entry.purpose} (line {entry.line})" for entry in entries if entry.bytes is None]
        limit_message = f"a function has more than {BUFFERS.value} buffers: raise the limit with {BUFFERS.variable}"
        return "cannot be computed: " + (", ".join(dict.fromkeys(unknown)) or limit_message)
    if declared is None or declared == peak:
        return ""
    if declared > peak:
        return f"the TTGIR does not explain {declared - peak} of the {declared} bytes in the metadata"
    return f"the allocations in the TTGIR need {peak - declared} bytes more than the {declared} in the metadata"


@dataclass(frozen=True, slots=True)
class _SizedAllocation:
    entry: Allocation
    request: BufferRequest
    index: int


class _AllocationReader:
    """Reads one function's allocations."""

    def __init__(self, code: FunctionCode, rules: ScratchRules, sizes: dict[str, int | None]) -> None:
        self.code, self.language, self.rules, self.sizes = code, code.language, rules, sizes
        self.memory = SharedMemoryLiveness(code)

    def measure(self) -> tuple[list[Allocation], int | None]:
        """The entries, and the bytes that they need together."""
        explicit: list[_SizedAllocation] = []
        scratch: list[_SizedAllocation] = []
        for index, instruction in enumerate(self.code.instructions):
            use = self.language.shared_use(instruction)
            if use.role in _ALLOCATION_ROLES:
                types = self.language.tensor_types(instruction, self.code.module)
                if types and (use.role is SharedRole.ALLOCATION or types[-1].is_memory):
                    explicit.append(self._explicit(index, instruction, use, types[-1]))
                    continue
            if use.role in _SCRATCH_ROLES:
                scratch += self._scratch(index, instruction, use)
        scratch += self._states()
        allocations = [*explicit, *scratch]
        entries = [allocation.entry for allocation in allocations]
        if len(allocations) > BUFFERS.value:
            return entries, None
        placed = self._place_requests([allocation.request for allocation in allocations])
        if all(entry.bytes is not None for entry in entries):
            return [replace(e, offset=at) for e, at in zip(entries, placed.offsets, strict=True)], placed.size
        # Small enough not to change the sum, but its offset is unknown.
        return entries, placed.size if self._is_hidden(allocations, placed.size) else None

    def _is_hidden(self, allocations: list[_SizedAllocation], size: int) -> bool:
        """True if the allocations of unknown size cannot increase the sum."""
        requests = []
        for allocation in allocations:
            request = allocation.request
            if allocation.entry.bytes is None:
                instruction = self.code.instructions[allocation.index]
                max_bytes = max_scratch_bytes(instruction, self.code, self.rules)
                if max_bytes is None:
                    return False
                request = request._replace(bytes=max_bytes)
            requests.append(request)
        return self._place_requests(requests).size == size

    def _place_requests(self, requests: list[BufferRequest]) -> BufferPlacement:
        return place_buffers(requests, by_size=self.rules.since((3, 3)) is not False)

    def _explicit(self, index: int, instruction: Instruction, use: SharedUse, memory: TensorType) -> _SizedAllocation:
        aliases, users = self.memory.aliases(index)
        first, last = self.memory.live_range(index, aliases)
        roles = {self.language.shared_use(self.code.instructions[user]).role for user in users}
        indexed = SharedRole.BUFFER in roles
        size = None if self.rules.has_clusters else _allocated(memory)
        role, dot = self._purpose(memory, users, roles)
        entry = Allocation(
            bytes=size, buffers=memory.shape[0] if indexed and len(memory.shape) > 1 else 1, line=instruction.line,
            source=source_of(instruction.location), role=role, dot=dot, name=self.language.source_name(instruction),
            is_scratch=False, first=self.code.instructions[first].line, last=self.code.instructions[last].line,
            offset=None,
        )  # fmt: skip
        request = self._request(
            index, size, _alignment(use, memory, self.rules), self.memory.time_of(first), self.memory.time_of(last) + 1
        )
        return _SizedAllocation(entry, request, index)

    def _request(self, index: int, size: int | None, alignment: int, first: int, stop: int) -> BufferRequest:
        group, partition = self.memory.partition.get(self.code.flow.block_of[index], (None, None))
        return BufferRequest(size or 0, alignment, first, stop, group, partition)

    def _scratch(self, index: int, instruction: Instruction, use: SharedUse) -> list[_SizedAllocation]:
        """The scratch memory of an operation."""
        alignment, purpose = _SCRATCH_ALIGNMENT, use.role.value
        if use.role is SharedRole.CALL:
            size, purpose = self.sizes.get(use.callee), f"frame of {use.callee}"
        elif use.role is SharedRole.PARTITIONS:
            size, alignment = use.captured_bytes, 8
        elif use.role is SharedRole.MATRIX_BARRIER:
            # Its lowering, which follows the TTGIR until 3.4, waits for it at its own barrier.
            size, alignment = (8 if self.rules.release in ((3, 3), (3, 4)) else 0), 16
        else:
            results = self.memory.values.results[index] if use.role is SharedRole.ATOMIC else ()
            is_used = any(self.memory.values.uses.get(value) for value in results)
            size = scratch_bytes(instruction, self.code, self.rules, is_used=is_used)
        if size == 0:
            return []
        entry = _scratch_entry(
            size, purpose, instruction.line, instruction.line, instruction.line, instruction.location
        )
        at = self.memory.time_of(index)
        return [_SizedAllocation(entry, self._request(index, size, alignment, at, at + 1), index)]

    def _states(self) -> list[_SizedAllocation]:
        """The bytes that tell the warps of partitions what to run. Always live."""
        function, instructions = self.code.function, self.code.instructions
        sizes = [self.language.shared_use(instructions[at]).warps for at in self.memory.ends]
        if not sizes:
            return []
        # The compiler fills the last group of four warps with an idle partition.
        size = None if None in sizes else max(-(-count // 4) * 4 for count in sizes if count is not None)
        role, lines = "states of the partitions' warps", (instructions[0].line, instructions[-1].line)
        entry = _scratch_entry(size, role, function.line, *lines, function.location)
        return [_SizedAllocation(entry, BufferRequest(size or 0, 4, 0, 2 * len(instructions) + 2), 0)]

    def _purpose(self, memory: TensorType, users: list[int], roles: set[SharedRole]) -> tuple[str, str | None]:
        """The purpose of an allocation, as text; for an operand, also the location of its dot."""
        if memory.element == BARRIER_ELEMENT or SharedRole.BARRIER in roles:
            return ("mbarriers" if SharedRole.BUFFER in roles else "mbarrier"), None
        operands = (purpose for user in users if (purpose := self._operand(user)) is not None)
        return next(operands, (SharedRole.STAGED_STORE.value if SharedRole.STAGED_STORE in roles else "tile", None))

    def _operand(self, user: int) -> tuple[str, str | None] | None:
        """`operand a of the dot` and `f.py:3`, for a user that is a matrix operation or feeds one."""
        visited: set[int] = set()
        pending = [user]
        while pending:
            at = pending.pop()
            if at in visited:
                continue
            visited.add(at)
            for value in self.memory.values.results[at]:
                for reader_index in self.memory.values.uses.get(value, ()):
                    reader = self.code.instructions[reader_index]
                    if reader.kind is EventKind.MATRIX:
                        operand = list(self.memory.values.reads[reader_index].values()).index(value)
                        role = f"operand {'abc'[operand]}" if operand < 3 else "scale"
                        return f"{role} of the dot", source_of(reader.location)
                    if reader.kind in _PASSING_KINDS:
                        pending.append(reader_index)
            if self.code.instructions[at].kind is EventKind.MATRIX:
                return None
        return None


def _scratch_entry(
    size: int | None, role: str, line: int, first: int, last: int, location: Location | None
) -> Allocation:
    return Allocation(
        bytes=size,
        buffers=1,
        line=line,
        source=source_of(location),
        role=role,
        dot=None,
        name="",
        is_scratch=True,
        first=first,
        last=last,
        offset=None,
    )


_PASSING_KINDS = frozenset({EventKind.MOVE, EventKind.SHARED_LOAD, EventKind.LAYOUT_CONVERSION})
_ALLOCATION_ROLES = frozenset({SharedRole.ALLOCATION, SharedRole.CONVERSION})
_SCRATCH_ROLES = frozenset(
    {
        SharedRole.CONVERSION, SharedRole.REDUCTION, SharedRole.SCAN, SharedRole.HISTOGRAM, SharedRole.GATHER,
        SharedRole.ATOMIC, SharedRole.TENSOR_MAP, SharedRole.MATRIX_BARRIER, SharedRole.CALL,
        SharedRole.PARTITIONS,
    }
)  # fmt: skip
BARRIER_ELEMENT = "i64"
"""Elements of an mbarrier."""


def _allocated(memory: TensorType) -> int:
    """Bytes of an allocation, with the padding of its layout.

    **Source**: getAllocationShapePerCTA in Triton's lib/Dialect/TritonGPU/IR/Dialect.cpp.
    """
    elements, layout = memory.elements, memory.encoding
    if layout is not None and layout.is_fp4_padded:
        elements *= 2  # eight unused bytes after every eight of packed fp4, as TMA writes them
    plain = elements
    for interval, padding in () if layout is None else layout.padding:
        if interval:  # no padding after the last element
            elements += (plain // interval - (plain % interval == 0)) * padding
    return elements * memory.bits // 8


def _alignment(use: SharedUse, memory: TensorType, rules: ScratchRules) -> int:
    """Alignment of an allocation in bytes: required by its swizzling or TMA, else a small number.

    **Source**: getAlignmentOrDefault of LocalAllocOp and the layouts' getAlignment; validated against the allocator of
    Triton 3.0, 3.3, 3.6 and 3.9.
    """
    if use.alignment is not None:
        return use.alignment
    layout = memory.encoding
    if layout is not None and layout.swizzle is not None:
        return 1024 if rules.release == (3, 3) else 128 * max(1, layout.swizzle // 16)
    if layout is not None and layout.has_leading_offset:
        return 1024
    return 16 if rules.since((3, 3)) is not False else 8

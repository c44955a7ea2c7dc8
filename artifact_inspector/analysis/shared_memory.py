"""The bill of a kernel's shared memory: what was allocated, for whom, and whether it adds up.

Read off TTGIR: the buffers that stand in its text, and the scratch that operations take while they
run, which Triton's allocator adds (`scratch`). The sum is the allocator's own (`allocator`), so that
it can be held against the `shared` of the metadata to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from artifact_inspector.analysis.allocator import Request, place
from artifact_inspector.analysis.reference import source_of
from artifact_inspector.analysis.regions import Code
from artifact_inspector.analysis.scratch import Rules, find_rules, most_bytes, scratch_bytes
from artifact_inspector.analysis.values import Values, number_values
from artifact_inspector.model import EventKind, Instruction, Language, Module, TensorType

__all__ = ["Allocation", "Bill", "find_bill"]

_PADDED = re.compile(r"padded_shared<\[([^\]]*)\]")
_STEP = re.compile(r"(\d+):\+(\d+)")
_CALLEE = re.compile(r"@(\"[^\"]*\"|[\w$.]+)")
_TYPES = re.compile(r" : \((.*)\) -> \(")
_SCALAR = re.compile(r"(?:b?f|i)(\d+)$")
_EXTENT = re.compile(r"\d+x")
_WARPS = re.compile(r"\bpartition\d+ num_warps\((\d+)\)")
_PLAIN_MMA = {"tc_gen5_mma": 5, "tc_gen5_mma_scaled": 7}
"""Blackwell's matrix operations, with what they read when no barrier is among it."""
_ALLOCATIONS = ("local_alloc", "alloc_tensor", "alloc_mbarrier")
_VIEWS = re.compile(r"memdesc|extract_slice|insert_slice|subview|\.trans$|reinterpret|select$|poison")
_SCRATCH_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class Allocation:
    """One piece of shared memory."""

    bytes: int | None
    """With all its buffers and its padding; None where it takes some and the amount cannot be told."""
    buffers: int
    """How many tiles it holds: its leading extent where it is indexed, else 1."""
    line: int
    """Line of the TTGIR."""
    source: str | None
    """`file.py:line` of the user's code."""
    purpose: str
    name: str
    """The value's name in the source, empty where it has none."""
    is_scratch: bool
    """Taken by an operation while it runs; stands in no text."""
    first: int
    """First line of the TTGIR at which it is live."""
    last: int
    offset: int | None
    """Where Triton places it; None unless the bill adds up."""


@dataclass(frozen=True, slots=True)
class Bill:
    """The shared memory of one kernel."""

    entries: tuple[Allocation, ...]
    """In text order."""
    peak: int | None
    """Bytes that Triton's allocator needs for them; None when the size of one is not known."""
    declared: int | None
    """Bytes that the metadata names."""
    note: str
    """What does not add up, empty when all does."""

    @property
    def accounted(self) -> bool | None:
        """True when the bill explains the metadata to the byte; None with nothing to compare."""
        return None if self.declared is None else self.peak == self.declared

    @property
    def unexplained(self) -> int | None:
        """Declared bytes that no entry explains (less than 0: the bill is too long)."""
        return None if self.declared is None or self.peak is None else self.declared - self.peak


def find_bill(
    codes: Sequence[Code],
    module: Module,
    language: Language,
    declared: int | None,
    triton: str | None = None,
) -> Bill | None:
    """The bill of a TTGIR module; None for one without functions.

    Args:
        codes: all functions of the module, the kernel among them.
        declared: `shared` of the metadata.
        triton: `triton_version` of the metadata.
    """
    if not codes:
        return None
    rules = find_rules(module, triton)
    sizes: dict[str, int | None] = {}
    by_name = {code.function.name: code for code in codes}
    called = {
        name: [
            found
            for x in code.function.instructions
            if x.opcode.endswith("call") and (found := _callee(x)) in by_name
        ]
        for name, code in by_name.items()
    }
    entries: list[Allocation] = []
    peak: int | None = None
    inner = {callee for callees in called.values() for callee in callees}
    for name in _callees_first(called):
        bill, peak_here = _Reader(by_name[name], module, language, rules, sizes).bill()
        sizes[name] = peak_here
        entries += bill
        if name not in inner:
            peak = peak_here
    entries.sort(key=lambda entry: entry.line)
    if peak is None or (declared is not None and peak != declared):
        entries = [replace(entry, offset=None) for entry in entries]
    return Bill(tuple(entries), peak, declared, _note(entries, peak, declared))


def _callees_first(called: dict[str, list[str]]) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    for start in called:
        stack = [(start, iter(called[start]))] if start not in seen else []
        seen.add(start)
        while stack:
            name, rest = stack[-1]
            callee = next((c for c in rest if c not in seen), None)
            if callee is None:
                order.append(name)
                stack.pop()
            else:
                seen.add(callee)
                stack.append((callee, iter(called[callee])))
    return order


def _note(entries: list[Allocation], peak: int | None, declared: int | None) -> str:
    if peak is None:
        unknown = [f"{entry.purpose} (line {entry.line})" for entry in entries if entry.bytes is None]
        return "cannot be computed: " + ", ".join(dict.fromkeys(unknown))
    if declared is None or declared == peak:
        return ""
    if declared > peak:
        return f"{declared - peak} bytes of the metadata's {declared} are explained by nothing in the TTGIR"
    return f"the allocations found need {peak - declared} bytes more than the metadata's {declared}"


@dataclass(frozen=True, slots=True)
class _Found:
    entry: Allocation
    request: Request
    index: int


class _Reader:
    """One function's allocations."""

    def __init__(
        self, code: Code, module: Module, language: Language, rules: Rules, sizes: dict[str, int | None]
    ) -> None:
        self.code = code
        self.module = module
        self.language = language
        self.rules = rules
        self.sizes = sizes
        self.values: Values = number_values(code.function)
        self.uses: dict[int, list[int]] = {}
        for index, reads in enumerate(self.values.reads):
            for value in reads.values():
                self.uses.setdefault(value, []).append(index)
        self.handed: dict[int, list[tuple[int, int, bool]]] = {}
        for index, flows in enumerate(self.values.flows):
            for source, target, _, back in flows:
                self.handed.setdefault(source, []).append((index, target, back))
        self._partitions()

    def _partitions(self) -> None:
        """The warp-specialised operation and the partition of each block, and where each ends."""
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
        """A time for an instruction: an operation with partitions counts behind all they hold."""
        return 2 * self.ends[index] + 1 if index in self.ends else 2 * index

    def bill(self) -> tuple[list[Allocation], int | None]:
        """The entries, and the bytes that they need together."""
        explicit: list[_Found] = []
        scratch: list[_Found] = []
        for index, instruction in enumerate(self.code.function.instructions):
            name = instruction.opcode.rpartition(".")[2]
            if name in _ALLOCATIONS or name == "convert_layout":
                types = self.language.types(instruction, self.module)
                if types and (name in _ALLOCATIONS or types[-1].is_memory):
                    explicit.append(self._explicit(index, instruction, types[-1]))
                    continue
            scratch += self._scratch(index, instruction)
        scratch += self._states()
        found = [*explicit, *scratch]
        placed = place([one.request for one in found])
        unknown = [one for one in found if one.entry.bytes is None]
        if unknown and not self._is_hidden(found, placed.size):
            return [one.entry for one in found], None
        if unknown:  # too small to count, but not where it lies
            return [one.entry for one in found], placed.size
        entries = [
            replace(one.entry, offset=offset) for one, offset in zip(found, placed.offsets, strict=True)
        ]
        return entries, placed.size

    def _is_hidden(self, found: list[_Found], size: int) -> bool:
        """True when what is not known cannot make the whole any larger."""
        requests = []
        for one in found:
            if one.entry.bytes is None:
                instruction = self.code.function.instructions[one.index]
                most = most_bytes(instruction, self.module, self.language, self.rules.threads_per_warp)
                if most is None:
                    return False
                requests.append(one.request._replace(bytes=most))
            else:
                requests.append(one.request)
        return place(requests).size == size

    def _explicit(self, index: int, instruction: Instruction, memory: TensorType) -> _Found:
        aliases, users = self._aliases(index)
        first, stop = self._live(index, aliases)
        indexed = any(_indexes(self.code.function.instructions[u]) for u in users)
        size = _allocated(memory)
        lines = [instruction.line, *(self.code.function.instructions[u].line for u in users)]
        entry = Allocation(
            size,
            memory.shape[0] if indexed and len(memory.shape) > 1 else 1,
            instruction.line,
            source_of(instruction.location),
            self._purpose(memory, users, indexed),
            _source_name(instruction),
            False,
            min(lines),
            max(lines),
            None,
        )
        return _Found(entry, self._request(index, size, _alignment(memory, self.rules), first, stop), index)

    def _request(self, index: int, size: int | None, alignment: int, first: int, stop: int) -> Request:
        group, partition = self.partition.get(self.code.flow.block_of[index], (None, None))
        return Request(size or 0, alignment, first, stop, group, partition)

    def _scratch(self, index: int, instruction: Instruction) -> list[_Found]:
        name = instruction.opcode.rpartition(".")[2]
        alignment = _SCRATCH_ALIGNMENT
        if instruction.kind is EventKind.BRANCH:
            if name == "call":
                callee = _callee(instruction)
                size = self.sizes.get(callee, None)
                purpose = f"frame of {callee}"
            elif name == "warp_specialize":
                size, purpose, alignment = _captures(instruction), "values handed to partitions", 8
            else:
                return []
        elif name in _PLAIN_MMA:
            if (
                self.rules.release not in ((3, 3), (3, 4))
                or len(instruction.operands.reads) != _PLAIN_MMA[name]
            ):
                return []
            # Its lowering, which comes behind the TTGIR until 3.4, waits for it at a barrier of its own.
            size, purpose, alignment = 8, "mbarrier of the matrix operation", 16
        elif name in _PURPOSES or name.startswith(("atomic_", "buffer_atomic")):
            used = any(self.uses.get(value) for value in self.values.results[index])
            size = scratch_bytes(instruction, self.module, self.language, self.rules, is_used=used)
            purpose = _PURPOSES.get(name, "result of an atomic")
        else:
            return []
        if size == 0:
            return []
        line = instruction.line
        entry = Allocation(
            size, 1, line, source_of(instruction.location), purpose, "", True, line, line, None
        )
        at = self.at(index)
        return [_Found(entry, self._request(index, size, alignment, at, at + 1), index)]

    def _states(self) -> list[_Found]:
        """The bytes through which the warps of partitions are told what to run, live all the time."""
        function = self.code.function
        sizes = [_partition_warps(function.instructions[operation]) for operation in self.ends]
        if not sizes:
            return []
        # The compiler fills the last group of four warps up with an idle partition.
        size = None if None in sizes else max(-(-count // 4) * 4 for count in sizes if count is not None)
        lines = function.instructions[0].line, function.instructions[-1].line
        entry = Allocation(
            size,
            1,
            function.line,
            source_of(function.location),
            "states of the partitions' warps",
            "",
            True,
            *lines,
            None,
        )
        return [_Found(entry, Request(size or 0, 4, 0, 2 * len(function.instructions) + 2), 0)]

    def _aliases(self, index: int) -> tuple[set[int], list[int]]:
        """The values that name an allocation, and the instructions that read one of them."""
        pending = list(self.values.results[index])
        seen = set(pending)
        users: set[int] = set()
        while pending:
            value = pending.pop()
            for user in self.uses.get(value, ()):
                users.add(user)
                instruction = self.code.function.instructions[user]
                if _VIEWS.search(instruction.opcode):
                    fresh = [v for v in self.values.results[user] if v not in seen]
                    seen.update(fresh)
                    pending += fresh
            for at, target, _ in self.handed.get(value, ()):
                users.add(at)
                if target not in seen:
                    seen.add(target)
                    pending.append(target)
        return seen, sorted(users)

    def _live(self, index: int, aliases: set[int]) -> tuple[int, int]:
        """First and stop time of an allocation under all its names."""
        born = self._births(index, aliases)
        first, last = self.at(index), self.at(index)
        for value in aliases:
            birth = born.get(value, index)
            first = min(first, self.at(birth))
            users = [*self.uses.get(value, ()), *(at for at, _, _ in self.handed.get(value, ()))]
            for user in users:
                last = max(last, self.at(self._until(birth, user)))
        return first, last + 1

    def _births(self, index: int, aliases: set[int]) -> dict[int, int]:
        """Instruction at which each name begins to be."""
        born = {}
        for user, results in enumerate(self.values.results):
            for value in results:
                if value in aliases:
                    born[value] = user
        flow, function = self.code.flow, self.code.function
        for at, handed in enumerate(self.values.flows):
            for _, target, owner, back in handed:
                if target not in aliases or target in born:
                    continue
                born[target] = max(at, owner) if not back else at
                if owner >= 0 and function.instructions[owner].opcode in ("scf.for", "scf.while"):
                    born[target] = min(owner + 1, len(function.instructions) - 1)
                elif owner < 0:
                    born[target] = function.blocks[-1 - owner].start
        _ = flow
        return born

    def _until(self, birth: int, user: int) -> int:
        """Last instruction at which a value must be kept for a use.

        A loop around the use alone needs it in every iteration.
        """
        flow = self.code.flow
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

    def _purpose(self, memory: TensorType, users: list[int], indexed: bool) -> str:
        """Who uses an allocation, in words."""
        instructions = self.code.function.instructions
        names = {instructions[u].opcode.rpartition(".")[2] for u in users}
        if any("barrier" in name or "expect" in name for name in names):
            return "mbarriers" if indexed else "mbarrier"
        for user in users:
            found = self._operand(user)
            if found is not None:
                return found
        if any("local_to_global" in name or name == "async_tma_store" for name in names):
            return "store staging"
        return "tile"

    def _operand(self, user: int) -> str | None:
        """`operand a of the dot at f.py:3`, for a user that is a matrix operation or feeds one."""
        seen: set[int] = set()
        pending = [user]
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self.code.function.instructions[at]
            for value in self.values.results[at]:
                for after in self.uses.get(value, ()):
                    reader = self.code.function.instructions[after]
                    if reader.kind is EventKind.MATRIX:
                        return self._named(reader, after, value)
                    if reader.kind is EventKind.MOVE or reader.kind in _PASSING:
                        pending.append(after)
            if instruction.kind is EventKind.MATRIX:
                return None
        return None

    def _named(self, matrix: Instruction, at: int, value: int) -> str:
        operand = list(self.values.reads[at].values()).index(value)
        place = source_of(matrix.location)
        letter = "abc"[operand] if operand < 3 else "a scale"
        return f"operand {letter} of the dot" + ("" if place is None else f" at {place}")


_PASSING = frozenset({EventKind.SHARED_LOAD, EventKind.LAYOUT_CONVERSION})
_PURPOSES = {
    "reduce": "reduction across warps",
    "scan": "scan across warps",
    "histogram": "histogram",
    "gather": "gather",
    "convert_layout": "layout conversion",
    "tensormap_create": "tensor map",
}


def _callee(instruction: Instruction) -> str:
    found = _CALLEE.search(instruction.text)
    return "" if found is None else found[1].strip('"')


def _indexes(instruction: Instruction) -> bool:
    return instruction.opcode.endswith(
        ("memdesc_index", "memdesc_subview", "extract_slice", "insert_slice_async")
    )


def _allocated(memory: TensorType) -> int:
    """Bytes of an allocation, with the padding of its layout."""
    elements = memory.elements
    found = _PADDED.search(memory.layout)
    if found is not None:
        plain = elements
        for interval, padding in _STEP.findall(found[1]):
            elements += plain // int(interval) * int(padding)
            if plain % int(interval) == 0:  # none behind the last element
                elements -= int(padding)
    return elements * memory.bits // 8


def _alignment(memory: TensorType, rules: Rules) -> int:
    return 16


def _source_name(instruction: Instruction) -> str:
    results = instruction.operands.results
    name = results[0].lstrip("%").partition("#")[0] if results else ""
    base, _, suffix = name.rpartition("_")
    name = base if base and suffix.isdigit() else name
    return "" if name.isdigit() or name.startswith("cst") else name


def _captures(instruction: Instruction) -> int | None:
    """Bytes of the values that partitions are handed, packed; None where their types are not in the text.

    **Source**: WarpSpecializeOp::getCaptureSizeAlign, getSharedMemorySize in Triton's
    lib/Dialect/TritonGPU/IR.
    """
    found = _TYPES.search(instruction.text)
    if found is None:
        return None
    size = 0
    for kind in _split(found[1]):
        scalar = _SCALAR.match(kind)
        if scalar is not None:
            size += -(-int(scalar[1]) // 8)
        elif "memdesc<" in kind and "tensor_memory" not in kind:
            size += 8 + 4 * len(_EXTENT.findall(kind.partition("<")[2].partition(",")[0]))
        elif kind.startswith("!"):
            size += 8
        else:
            return None
    return size


def _partition_warps(instruction: Instruction) -> int | None:
    found = _WARPS.findall(instruction.text)
    return sum(int(warps) for warps in found) if found else None


def _split(text: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "<[({":
            depth += 1
        elif char in ">])}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [part for part in (*parts, text[start:].strip()) if part]

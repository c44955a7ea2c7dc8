"""Why a load moves fewer bytes at once than a thread can: what the tensor-level IR proves too little of.

A thread loads 16 bytes at once where it owns that many neighbouring elements, their address is proven to
be a multiple of 16, and one bit of the mask stands for all of them. Each of the three may fail, for
reasons that stand in the IR. A cause is named only where it limits the load to what was measured at the
last stage: a back end may join narrow loads to a wider one, and what it overcame is no cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.access.contiguity import Axes, Dataflow
from artifact_inspector.analysis.flow.places import source_of
from artifact_inspector.model import LOADS, Instruction, TensorType

__all__ = ["Cause", "LoadWidth", "Reason", "explain_widths", "name_of"]

WIDEST = 16
"""Bytes that a thread moves with one instruction on every target (PTX ISA `ld`, `.v4.b32`; AMD `dwordx4`)."""
_PER_THREAD = re.compile(r"sizePerThread = \[([\d, ]+)\].*?order = \[([\d, ]+)\]")
_SLICED = re.compile(r"slice<\{dim = (\d+)")
_OF_MATRIX = re.compile(r"#\w+\.((?:nvidia_)?mma|amd_mfma|amd_wmma|linear|dot_op)<")
_SUMS = frozenset({"addptr", "addi", "subi"})


class Reason(Enum):
    """What keeps a load narrow."""

    UNALIGNED = "nothing says that the argument is a multiple of 16"
    STRIDE = "neighbours are a stride apart that is not known to be 1"
    MODULO = "addresses are taken modulo a number of unknown divisibility"
    DIVISION = "addresses come from a division"
    GATHER = "addresses are loaded"
    OFFSET = "an offset is no multiple of the width"
    MASK = "neighbours may be masked apart"
    TILE = "the tile has fewer bytes for each thread"
    SCALAR = "one number for the whole block"
    LAYOUT = "the layout gives each thread fewer neighbours"


class Cause(NamedTuple):
    """One thing that keeps a load narrow."""

    reason: Reason
    limit: int
    """Bytes per thread that it allows."""
    name: str
    """The argument, constant or layout that it is about; empty where there is none."""
    line: int
    """Of the evidence, in the first stage (for a layout, in TTGIR)."""


class LoadWidth(NamedTuple):
    """A load statement of the program, and how wide it became."""

    line: int
    """In the first stage."""
    source: str | None
    """`file.py:line` of the user's code."""
    name: str
    """What the IR calls the value, when that is a name."""
    masked: bool
    width: int | None
    """Bytes per thread of its narrowest instruction at the last stage; None where it was not found, or
    is a tile."""
    widths: Mapping[int, int]
    """Bytes per thread → instructions at the last stage, as far as their place tells that they are its."""
    causes: tuple[Cause, ...]
    """Empty for a load of full width, in a function that others call, and where nothing explains it."""


def explain_widths(
    first: StageAccesses,
    last: StageAccesses,
    layouts: StageAccesses | None,
    divisibility: Mapping[str, int],
) -> tuple[LoadWidth, ...]:
    """The load statements of a function with their width at the last stage, and why it is no more.

    Args:
        first: the first tensor-level stage, from which the causes are read.
        layouts: the stage with layouts (TTGIR), which tells how many threads share a tile.
        divisibility: `tt.divisibility` of the arguments in the first stage.
    """
    code = first.code
    flow = Dataflow(code.function, first.module, first.language, divisibility, code.values)
    # What a function that is called can rely on stands with its callers.
    names = (f"@{first.code.function.name}(", f'@"{first.code.function.name}"(')
    is_called = len(first.module.functions) > 1 and any(
        name in instruction.text
        for function in first.module.functions
        for instruction in function.instructions
        if instruction.opcode.endswith("call")
        for name in names
    )
    found: list[LoadWidth] = []
    seen = set()
    for access in first.accesses:
        if access.kind not in LOADS or (access.chain is not None and access.chain in seen):
            continue  # in a pipelined first stage, a copy in front of the loop
        seen.add(access.chain)
        instruction = first.code.function.instructions[access.index]
        there = [other for other in last.at(access) if other.kind in LOADS]
        widths: dict[int, int] = {}
        for other in there:
            if other.width is not None:
                widths[other.width] = widths.get(other.width, 0) + 1
        width = min(widths, default=None)
        if width is None:
            width = _common_width(last, unplaced=access.chain is not None)
        causes: tuple[Cause, ...] = ()
        if width is not None and width < WIDEST and not is_called:
            causes = _causes(access, instruction, width, first, layouts, flow)
        found.append(
            LoadWidth(
                access.line,
                source_of(instruction.location),
                name_of(instruction),
                access.predicated,
                width,
                dict(sorted(widths.items(), reverse=True)),
                causes,
            )
        )
    return tuple(found)


def _common_width(stage: StageAccesses, *, unplaced: bool) -> int | None:
    """The width of all loads, or of those without a place of their own (`s_clause`), if they have one.

    Whichever of them are the statement's, they are as wide.
    """
    widths = {
        access.width
        for access in stage.accesses
        if access.kind in LOADS and (access.chain is None or not unplaced)
    }
    return widths.pop() if len(widths) == 1 else None


def name_of(instruction: Instruction) -> str:
    """What the IR calls a loaded value, empty where that is a number."""
    results = instruction.operands.results
    name = results[0].lstrip("%").partition("#")[0] if results else ""
    base, _, number = name.rpartition("_")
    name = base if base and number.isdigit() else name
    return "" if name.isdigit() else name


def _causes(
    access: MemoryAccess,
    instruction: Instruction,
    width: int,
    first: StageAccesses,
    layouts: StageAccesses | None,
    flow: Dataflow,
) -> tuple[Cause, ...]:
    """What limits a load to the width that it has."""
    roles = None if first.language.access is None else first.language.access(instruction)
    types = first.language.types(instruction, first.module)
    if roles is None or len(roles.address) != 1:
        return ()  # a descriptor
    if not types:
        return (Cause(Reason.SCALAR, width, "", access.line),)
    tile, size = types[0], types[0].bits // 8
    per_thread = _bytes_per_thread(tile, layouts)
    if max(per_thread, size) == width:
        return (Cause(Reason.TILE, width, "", access.line),)  # nothing that allows less has kept it down
    pointer = flow.value(access.index, roles.address[0])
    axes = None if pointer is None else flow.axes(pointer)
    if pointer is None or axes is None or axes.rank != len(tile.shape) or tile.bits < 8:
        return ()
    cap = min(WIDEST, per_thread)
    axis = _fast_axis(axes, tile.shape)
    found = list(_Search(flow, size, cap).of_address(pointer, axis, access.line, is_pointer=True))
    if roles.mask:
        mask = flow.value(access.index, roles.mask[0])
        if mask is not None:
            found += _Search(flow, size, cap).of_mask(mask, axis)
    if all(cause.limit != width for cause in found):
        found += _layout_cause(access, width, size, layouts)
    unique = {(cause.reason, cause.name): cause for cause in reversed(found) if cause.limit == width}
    return tuple(reversed(unique.values()))


def _bytes_per_thread(tile: TensorType, layouts: StageAccesses | None) -> int:
    """Bytes of a tile for each thread of the block; WIDEST where the number of threads is not told."""
    if layouts is None or layouts.code.function.partitions:
        return WIDEST
    said = layouts.module.attributes
    warps = next((said[key] for key in said if key.endswith(".num-warps")), "")
    # Triton 2.0 does not name the width of a warp: it had NVIDIA's only.
    lanes = next((said[key] for key in said if key.endswith(".threads-per-warp")), "32")
    ctas = next((said[key] for key in said if key.endswith(".num-ctas")), "1")
    told = warps.isdigit() and lanes.isdigit() and ctas.isdigit()
    threads = int(warps) * int(lanes) * int(ctas) if told else 0
    return tile.size // threads if threads else WIDEST


def _fast_axis(axes: Axes, shape: tuple[int, ...]) -> int:
    """The axis along which a thread's elements lie: the longest runs, the last of equals."""
    return max(range(axes.rank), key=lambda d: (axes.contiguity[d], shape[d] > 1, d))


def _layout_cause(access: MemoryAccess, width: int, size: int, layouts: StageAccesses | None) -> list[Cause]:
    """The layout, where it gives a thread just as many neighbours as the load is wide.

    Of the layouts of matrix operations it is only known that nothing else has limited the load.
    """
    if layouts is None:
        return []
    for other in layouts.at(access):
        instruction = layouts.code.function.instructions[other.index]
        for found in layouts.language.types(instruction, layouts.module):
            matrix, blocked = _OF_MATRIX.search(found.layout), _PER_THREAD.search(found.layout)
            if matrix is not None:
                return [Cause(Reason.LAYOUT, width, matrix[1], other.line)]
            if blocked is not None:
                neighbours = [int(part) for part in blocked[1].split(",")]
                gone = {int(dim) for dim in _SLICED.findall(found.layout)}
                axes = [axis for axis in map(int, blocked[2].split(",")) if axis not in gone]
                if axes and axes[0] < len(neighbours) and neighbours[axes[0]] * size == width:
                    return [Cause(Reason.LAYOUT, width, "blocked", other.line)]
    return []


class _Search:
    """Looks through the sums that an address is made of for terms that allow less than `cap` bytes."""

    def __init__(self, flow: Dataflow, size: int, cap: int) -> None:
        self.flow = flow
        self.size = size
        """Bytes of an element."""
        self.cap = cap
        self.seen: set[tuple[int, int | None]] = set()

    def of_address(self, value: int, axis: int | None, line: int, *, is_pointer: bool) -> Iterator[Cause]:
        """Causes in the terms of an address; `axis` is None for what is the same along the fast axis."""
        if (value, axis) in self.seen:
            return
        self.seen.add((value, axis))
        instruction = self.flow.definition(value)
        if instruction is None and self.flow.argument(value) is None and value >= 0:
            for source in self.flow.inputs(value):  # handed over, around a loop or out of a branch
                yield from self.of_address(source, axis, line, is_pointer=is_pointer)
            return
        operation = ""
        if instruction is not None:
            line, operation = instruction.line, instruction.opcode.rpartition(".")[2]
        if operation in _SUMS:
            for place, source in enumerate(self.flow.inputs(value)):
                yield from self.of_address(source, axis, line, is_pointer=is_pointer and place == 0)
            return
        sources = self.flow.sources(value, axis)
        if sources is not None:
            for source, before in sources:
                yield from self.of_address(source, before, line, is_pointer=is_pointer)
        else:
            limit = self._limit(value, axis, is_pointer=is_pointer)
            if limit is not None and limit < self.cap:
                yield from self._blame(value, axis, limit, line)

    def of_mask(self, value: int, axis: int) -> Iterator[Cause]:
        """Causes in the comparisons that a mask is made of."""
        instruction = self.flow.definition(value)
        if instruction is None:
            for source in self.flow.inputs(value):
                if (source, axis) not in self.seen:
                    self.seen.add((source, axis))
                    yield from self.of_mask(source, axis)
            return
        sources = self.flow.sources(value, axis)
        if instruction.opcode.rpartition(".")[2] in ("andi", "ori", "xori"):
            for source in self.flow.inputs(value):
                yield from self.of_mask(source, axis)
        elif sources is not None:
            for source, before in sources:
                if before is not None:
                    yield from self.of_mask(source, before)
        else:
            axes = self.flow.axes(value)
            if axes is not None and axis < axes.rank and axes.constancy[axis] * self.size < self.cap:
                names = self._unaligned(value) or [""]
                limit = max(axes.constancy[axis] * self.size, self.size)
                yield from (Cause(Reason.MASK, limit, name, instruction.line) for name in names)

    def _limit(self, value: int, axis: int | None, *, is_pointer: bool) -> int | None:
        """Bytes along the fast axis that a term leaves together; None where nothing is known of it."""
        axes = self.flow.axes(value)
        if axes is None:
            return None
        if axis is None or axis >= axes.rank:
            pairs = zip(axes.contiguity, axes.divisibility, strict=True)
            limit = min(1 if run > 1 else divisor for run, divisor in pairs)
        elif axes.contiguity[axis] > 1:
            limit = min(axes.contiguity[axis], axes.divisibility[axis])
        else:
            limit = min(axes.constancy[axis], axes.divisibility[axis])
        return max(self.size, limit if is_pointer else limit * self.size)

    def _blame(self, value: int, axis: int | None, limit: int, line: int) -> Iterator[Cause]:
        instruction = self.flow.definition(value)
        name = self.flow.argument(value)
        if name is not None:
            yield Cause(Reason.UNALIGNED, limit, name.lstrip("%"), line)
            return
        if instruction is None:  # a loop's variable
            names = self._unaligned(value)
            for name in names:
                yield Cause(Reason.UNALIGNED, limit, name, line)
            if not names:
                yield Cause(Reason.OFFSET, limit, "", line)
            return
        operation = instruction.opcode.rpartition(".")[2]
        if instruction.kind in LOADS:
            yield Cause(Reason.GATHER, limit, name_of(instruction), line)
        elif operation.startswith("rem"):
            bound = [name for divisor in self.flow.inputs(value)[1:] for name in self._names(divisor)]
            yield Cause(Reason.MODULO, limit, bound[0] if bound else "", line)
        elif operation.startswith(("div", "shr")):
            yield Cause(Reason.DIVISION, limit, next(iter(self._names(value)), ""), line)
        elif operation in ("muli", "shli"):
            yield from self._blame_product(value, axis, limit, line)
        elif operation in ("constant", "make_range", "get_program_id"):
            yield Cause(Reason.OFFSET, limit, "", line)

    def _blame_product(self, value: int, axis: int | None, limit: int, line: int) -> Iterator[Cause]:
        factors = self.flow.inputs(value)
        if axis is not None:
            fixed = [f for f in factors if self._is_constant_along(f, axis)]
            if len(fixed) < len(factors):
                names = [name for factor in fixed for name in self._names(factor)] or [""]
                yield from (Cause(Reason.STRIDE, limit, name, line) for name in names)
                return
        names = self._unaligned(value)
        yield from (Cause(Reason.UNALIGNED, limit, name, line) for name in names)
        if not names:
            quotient = next(
                (q for q in map(self._unspread, factors) if self._operation(q).startswith("div")), None
            )
            if quotient is not None:
                yield from self._blame(quotient, None, limit, line)
            else:
                yield Cause(Reason.OFFSET, limit, "", line)

    def _unspread(self, value: int) -> int:
        """The value that a tensor was made from by spreading and converting."""
        while sources := self.flow.sources(value, None):
            value = sources[0][0]
        return value

    def _operation(self, value: int) -> str:
        instruction = self.flow.definition(value)
        return "" if instruction is None else instruction.opcode.rpartition(".")[2]

    def _is_constant_along(self, value: int, axis: int) -> bool:
        axes = self.flow.axes(value)
        return axes is not None and axis < axes.rank and axes.constancy[axis] > 1

    def _names(self, value: int) -> list[str]:
        """The arguments that a value is made of, or the number that it is."""
        axes = self.flow.axes(value)
        if axes is not None and axes.value is not None:
            return [str(axes.value)]
        return [name for name, _ in self._arguments(value)]

    def _unaligned(self, value: int) -> list[str]:
        """The arguments under a value that are not known to be multiples of enough."""
        return [name for name, axes in self._arguments(value) if axes.divisibility[0] * self.size < WIDEST]

    def _arguments(self, value: int) -> list[tuple[str, Axes]]:
        found: dict[str, Axes] = {}
        pending, seen = [value], set[int]()
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            name = self.flow.argument(current)
            axes = self.flow.axes(current)
            if name is not None and axes is not None:
                found[name.lstrip("%")] = axes
            instruction = self.flow.definition(current)
            if instruction is None or instruction.kind not in LOADS:
                pending += reversed(self.flow.inputs(current))
        return list(found.items())

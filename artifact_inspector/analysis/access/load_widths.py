"""Why a load or store is narrower than the hardware allows: the properties that the IR does not prove.

A thread moves 16 bytes at once if it owns that many contiguous elements, their address is proven to be a
multiple of 16, and one mask bit covers all of them. Each condition may fail, for reasons visible in the
IR. A cause is reported only if it limits the access to the width at the last stage: a back end may merge
narrow loads, and what it overcame is not a cause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.access.contiguity import Axes, Dataflow
from artifact_inspector.analysis.flow.places import source_of
from artifact_inspector.model import LOADS, EventKind, Instruction, SourceLine, TensorType, Word
from artifact_inspector.model.axes import AxisRole
from artifact_inspector.model.encoding import Encoding, LayoutKind

WIDEST = 16
"""Bytes that a thread moves with one instruction on every target (PTX ISA `ld`, `.v4.b32`; AMD `dwordx4`)."""
_SUMS = frozenset({AxisRole.ADD_POINTER, AxisRole.ADD, AxisRole.SUBTRACT})
_OF_OPERANDS = frozenset(
    {LayoutKind.MMA, LayoutKind.MFMA, LayoutKind.WMMA, LayoutKind.LINEAR, LayoutKind.DOT_OPERAND}
)


class Reason(Word):
    """A reason why a load or store is narrow."""

    UNALIGNED = "the argument is not known to be a multiple of 16"
    STRIDE = "the stride between neighbouring elements is not known to be 1"
    MODULO = "addresses are computed modulo a number of unknown divisibility"
    DIVISION = "addresses are computed with a division"
    GATHER = "addresses are loaded from memory"
    OFFSET = "an offset is not a multiple of the width"
    MASK = "the mask may differ between neighbouring elements"
    TILE = "the tile has fewer bytes per thread"
    SCALAR = "the block loads a single value"
    LAYOUT = "the layout gives each thread fewer contiguous elements"


_PROMISES = frozenset({Reason.UNALIGNED, Reason.MASK, Reason.MODULO})


class Cause(NamedTuple):
    """One cause of a narrow load or store."""

    reason: Reason
    limit: int
    """Bytes per thread that it allows."""
    name: str
    """The argument, constant or layout concerned; empty if there is none."""
    line: int
    """Of the evidence: in the first stage, or in TTGIR for a layout."""

    @property
    def is_promise(self) -> bool:
        """True if a promise of the caller removes the cause: that a number divides the argument."""
        return self.reason in _PROMISES and self.name.isidentifier()


class LoadWidth(NamedTuple):
    """A load or store statement of the program, and its width at the last stage."""

    line: int
    """In the first stage."""
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    name: str
    """Name of the loaded value in the IR, if it has one."""
    masked: bool
    width: int | None
    """Bytes per thread of its narrowest instruction at the last stage; None if it was not found or is a tile.
    """
    widths: Mapping[int, int]
    """Bytes per thread → instructions at the last stage, for those with its source location."""
    causes: tuple[Cause, ...]
    """Empty for an access of full width, in a called function, and if nothing explains the width."""


def explain_widths(
    first: StageAccesses,
    last: StageAccesses,
    layouts: StageAccesses | None,
    divisibility: Mapping[str, int],
    kinds: frozenset[EventKind] = LOADS,
) -> tuple[LoadWidth, ...]:
    """The load or store statements of a function, their width at the last stage, and what limits it.

    Args:
        first: the first tensor-level stage, from which the causes are read.
        layouts: the stage with layouts (TTGIR), for the number of threads that share a tile.
        divisibility: `tt.divisibility` of the arguments in the first stage.
        kinds: of the statements, and of the instructions that they became.
    """
    code = first.code
    flow = Dataflow(code.function, first.module, first.language, divisibility, code.values)
    is_called = _is_called(first)
    found: list[LoadWidth] = []
    seen = set()
    for access in first.accesses:
        if access.kind not in kinds or (access.chain is not None and access.chain in seen):
            continue  # in a pipelined first stage, a copy before the loop
        seen.add(access.chain)
        instruction = first.code.function.instructions[access.index]
        there = [other for other in last.at(access) if other.kind in kinds]
        widths: dict[int, int] = {}
        for other in there:
            if other.width is not None:
                widths[other.width] = widths.get(other.width, 0) + 1
        width = min(widths, default=None)
        if width is None:
            width = _common_width(last, kinds, unplaced=access.chain is not None)
        causes: tuple[Cause, ...] = ()
        if width is not None and width < WIDEST and not is_called:
            causes = _causes(access, instruction, width, first, layouts, flow)
        found.append(
            LoadWidth(
                access.line,
                source_of(instruction.location),
                first.language.source_name(instruction),
                access.predicated,
                width,
                dict(sorted(widths.items(), reverse=True)),
                causes,
            )
        )
    return tuple(found)


def _common_width(stage: StageAccesses, kinds: frozenset[EventKind], *, unplaced: bool) -> int | None:
    """The common width of all accesses, or of those without a location (`s_clause`); None if they differ.

    With a common width, the statement's own accesses need not be identified.
    """
    widths = {
        access.width
        for access in stage.accesses
        if access.kind in kinds and (access.chain is None or not unplaced)
    }
    return widths.pop() if len(widths) == 1 else None


def _is_called(stage: StageAccesses) -> bool:
    """True for a function that another calls: its guarantees depend on its callers."""
    name, functions = stage.code.function.name, stage.module.functions
    return len(functions) > 1 and any(
        stage.language.shared(instruction).callee == name
        for function in functions
        for instruction in function.instructions
        if instruction.kind is EventKind.BRANCH
    )


def _causes(
    access: MemoryAccess,
    instruction: Instruction,
    width: int,
    first: StageAccesses,
    layouts: StageAccesses | None,
    flow: Dataflow,
) -> tuple[Cause, ...]:
    """The causes that limit an access to its width."""
    roles = None if first.language.access is None else first.language.access(instruction)
    types = first.language.types(instruction, first.module)
    if roles is None or len(roles.address) != 1:
        return ()  # a descriptor
    if not types:
        return (Cause(Reason.SCALAR, width, "", access.line),)
    tile, size = types[0], types[0].bits // 8
    per_thread = _bytes_per_thread(tile, layouts)
    if _neighbours(access, layouts) * size > per_thread:
        # A slice of a larger layout: several threads hold the same elements, so the tile does not limit
        # them.
        per_thread = min(WIDEST, tile.size)
    if max(per_thread, size) == width:  # no stricter limit applied
        matrix = _matrix_layout(access, width, layouts)
        return (Cause(Reason.TILE, width, "", access.line),) if matrix is None else (matrix,)
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
    """Bytes of a tile per thread of the block; WIDEST if the number of threads is unknown."""
    if layouts is None or layouts.code.function.partitions:
        return WIDEST
    said = layouts.language.launch(layouts.module)
    # Triton 2.0 does not give the width of a warp: it supported NVIDIA only.
    threads = (said.warps or 0) * (said.lanes or NVIDIA_LANES) * (said.ctas or 1)
    return tile.size // threads if threads else WIDEST


NVIDIA_LANES = 32


def _fast_axis(axes: Axes, shape: tuple[int, ...]) -> int:
    """The axis along which a thread's elements are contiguous: the longest runs, the last of equals."""
    return max(range(axes.rank), key=lambda d: (axes.contiguity[d], shape[d] > 1, d))


def _layout_cause(access: MemoryAccess, width: int, size: int, layouts: StageAccesses | None) -> list[Cause]:
    """The layout, if it gives a thread exactly as many contiguous elements as the load is wide.

    For layouts of matrix operations it is only known that nothing else limited the load.
    """
    matrix = _matrix_layout(access, width, layouts)
    if matrix is not None:
        return [matrix]
    for encoding, line in _encodings(access, layouts):
        if _run(encoding) * size == width:
            return [Cause(Reason.LAYOUT, width, encoding.root.name, line)]
    return []


def _matrix_layout(access: MemoryAccess, width: int, layouts: StageAccesses | None) -> Cause | None:
    """The layout of a matrix operation, or of a row or column of one, if the access has it."""
    for encoding, line in _encodings(access, layouts):
        name = next((made.name for made in encoding.chain if made.kind in _OF_OPERANDS), None)
        if name is not None:
            return Cause(Reason.LAYOUT, width, name, line)
    return None


def _neighbours(access: MemoryAccess, layouts: StageAccesses | None) -> int:
    """Contiguous elements that its layout gives each thread; 0 if unknown."""
    return min((_run(encoding) for encoding, _ in _encodings(access, layouts)), default=0)


def _encodings(access: MemoryAccess, layouts: StageAccesses | None) -> Iterator[tuple[Encoding, int]]:
    """The layouts of an access in TTGIR, each with its line."""
    if layouts is None:
        return
    for other in layouts.at(access):
        instruction = layouts.code.function.instructions[other.index]
        for found in layouts.language.types(instruction, layouts.module):
            if found.encoding is not None:
                yield found.encoding, other.line


def _run(encoding: Encoding) -> int:
    """Elements per thread along the fastest axis of a blocked layout, or of a slice of one; else 0."""
    blocked = encoding.root
    if blocked.size_per_thread is None or blocked.order is None:
        return 0
    gone = {made.dim for made in encoding.chain}
    axis = next((axis for axis in blocked.order if axis not in gone), None)
    return blocked.size_per_thread[axis] if axis is not None and axis < len(blocked.size_per_thread) else 0


class _Search:
    """Searches the sums that form an address for terms that allow less than `cap` bytes."""

    def __init__(self, flow: Dataflow, size: int, cap: int) -> None:
        self.flow = flow
        self.size = size
        """Bytes of an element."""
        self.cap = cap
        self.seen: set[tuple[int, int | None]] = set()

    def of_address(self, value: int, axis: int | None, line: int, *, is_pointer: bool) -> Iterator[Cause]:
        """Causes in the terms of an address. `axis` is None for values equal along the fast axis."""
        pending: list[tuple[int, int | None, int, bool]] = [(value, axis, line, is_pointer)]
        while pending:
            value, axis, line, is_pointer = pending.pop()
            if (value, axis) in self.seen:
                continue
            self.seen.add((value, axis))
            instruction, operation = self.flow.definition(value), self.flow.operation(value)
            line = line if instruction is None else instruction.line
            handed_over = instruction is None and self.flow.argument(value) is None and value >= 0
            if handed_over or (operation is not None and operation.role in _SUMS):
                terms = [
                    (source, axis, line, is_pointer and (handed_over or place == 0))
                    for place, source in enumerate(self.flow.inputs(value))
                ]
                pending += reversed(terms)
                continue
            sources = self.flow.sources(value, axis)
            if sources is not None:
                pending += [(source, before, line, is_pointer) for source, before in reversed(sources)]
                continue
            limit = self._limit(value, axis, is_pointer=is_pointer)
            if limit is not None and limit < self.cap:
                yield from self._blame(value, axis, limit, line)

    def of_mask(self, value: int, axis: int) -> Iterator[Cause]:
        """Causes in the comparisons that form a mask."""
        pending = [(value, axis)]
        while pending:
            value, axis = pending.pop()
            if (value, axis) in self.seen:
                continue
            self.seen.add((value, axis))
            instruction, operation = self.flow.definition(value), self.flow.operation(value)
            if instruction is None or operation is None or operation.role is AxisRole.LOGIC:
                pending += [(source, axis) for source in reversed(self.flow.inputs(value))]
                continue
            sources = self.flow.sources(value, axis)
            if sources is not None:
                pending += [(source, before) for source, before in reversed(sources) if before is not None]
                continue
            axes = self.flow.axes(value)
            if axes is not None and axis < axes.rank and axes.constancy[axis] * self.size < self.cap:
                names = self._unaligned(value) or [""]
                limit = max(axes.constancy[axis] * self.size, self.size)
                yield from (Cause(Reason.MASK, limit, name, instruction.line) for name in names)

    def _limit(self, value: int, axis: int | None, *, is_pointer: bool) -> int | None:
        """Bytes along the fast axis that a term keeps contiguous; None if nothing is known about it."""
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
        if instruction is None:  # an induction variable
            names = self._unaligned(value)
            for name in names:
                yield Cause(Reason.UNALIGNED, limit, name, line)
            if not names:
                yield Cause(Reason.OFFSET, limit, "", line)
            return
        role = self._role(value)
        if instruction.kind in LOADS:
            yield Cause(Reason.GATHER, limit, self.flow.name(value), line)
        elif role is AxisRole.REMAINDER:
            bound = [name for divisor in self.flow.inputs(value)[1:] for name in self._names(divisor)]
            yield Cause(Reason.MODULO, limit, bound[0] if bound else "", line)
        elif role in (AxisRole.DIVIDE, AxisRole.SHIFT_RIGHT):
            yield Cause(Reason.DIVISION, limit, next(iter(self._names(value)), ""), line)
        elif role in (AxisRole.MULTIPLY, AxisRole.SHIFT_LEFT):
            yield from self._blame_product(value, axis, limit, line)
        elif role in (AxisRole.CONSTANT, AxisRole.RANGE, AxisRole.PROGRAM):
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
            spread = map(self._unspread, factors)
            quotient = next((value for value in spread if self._role(value) is AxisRole.DIVIDE), None)
            if quotient is not None:
                yield from self._blame(quotient, None, limit, line)
            else:
                yield Cause(Reason.OFFSET, limit, "", line)

    def _unspread(self, value: int) -> int:
        """The value that a tensor was broadcast or converted from."""
        while sources := self.flow.sources(value, None):
            value = sources[0][0]
        return value

    def _role(self, value: int) -> AxisRole:
        operation = self.flow.operation(value)
        return AxisRole.NONE if operation is None else operation.role

    def _is_constant_along(self, value: int, axis: int) -> bool:
        axes = self.flow.axes(value)
        return axes is not None and axis < axes.rank and axes.constancy[axis] > 1

    def _names(self, value: int) -> list[str]:
        """The arguments that a value depends on, or its constant value."""
        axes = self.flow.axes(value)
        if axes is not None and axes.value is not None:
            return [str(axes.value)]
        return [name for name, _ in self._arguments(value)]

    def _unaligned(self, value: int) -> list[str]:
        """The arguments of a value that are not known to be sufficiently divisible."""
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

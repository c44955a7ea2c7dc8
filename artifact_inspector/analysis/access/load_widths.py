"""Why a load or store is narrower than the hardware allows: the properties that the IR does not prove.

A thread moves 16 bytes at once if it owns that many contiguous elements, their address is proven to be a multiple of
16, and one mask bit covers all of them. Each condition may fail, for reasons visible in the IR. A cause is reported
only if it limits the access to the width at the last stage: a back end may merge narrow loads, and what it overcame is
not a cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.access.axis_analysis import Axes, AxisAnalysis
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.model import LOADS, EventKind, SourceLine, StringEnum, TensorType
from artifact_inspector.model.axes import AxisRole
from artifact_inspector.model.encoding import Encoding, LayoutKind

MAX_BYTES = 16
"""Bytes that a thread moves with one instruction on every target (PTX ISA `ld`, `.v4.b32`; AMD `dwordx4`)."""
_SUMS = frozenset({AxisRole.ADD_POINTER, AxisRole.ADD, AxisRole.SUBTRACT})
_OF_OPERANDS = frozenset({LayoutKind.MMA, LayoutKind.MFMA, LayoutKind.WMMA, LayoutKind.LINEAR, LayoutKind.DOT_OPERAND})


class NarrowReason(StringEnum):
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


_PROMISES = frozenset({NarrowReason.UNALIGNED, NarrowReason.MASK, NarrowReason.MODULO})


class NarrowCause(NamedTuple):
    """One cause of a narrow load or store."""

    reason: NarrowReason
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
    """Bytes per thread of its narrowest instruction at the last stage; None if it was not found or is a tile."""
    widths: Mapping[int, int]
    """Bytes per thread → instructions at the last stage, for those with its source location."""
    causes: tuple[NarrowCause, ...]
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
    analysis = AxisAnalysis(first.code, divisibility)
    is_called = _is_called(first)
    load_widths: list[LoadWidth] = []
    visited_chains = set()
    for access in first.accesses:
        if access.kind not in kinds or (access.chain is not None and access.chain in visited_chains):
            continue  # in a pipelined first stage, a copy before the loop
        visited_chains.add(access.chain)
        instruction = first.code.instructions[access.index]
        widths = Counter(
            other.width for other in last.accesses_at(access) if other.kind in kinds and other.width is not None
        )
        width = min(widths, default=None)
        if width is None:
            width = _common_width(last, kinds, unplaced=access.chain is not None)
        is_narrow = width is not None and width < MAX_BYTES and not is_called
        load_widths.append(
            LoadWidth(
                access.line,
                source_of(instruction.location),
                first.code.language.source_name(instruction),
                access.is_predicated,
                width,
                dict(sorted(widths.items(), reverse=True)),
                _causes(access, width, first, layouts, analysis) if width is not None and is_narrow else (),
            )
        )
    return tuple(load_widths)


def _common_width(stage: StageAccesses, kinds: frozenset[EventKind], *, unplaced: bool) -> int | None:
    """The common width of all accesses, or of those without a location (`s_clause`); None if they differ.

    With a common width, the statement's own accesses need not be identified.
    """
    widths = {a.width for a in stage.accesses if a.kind in kinds and (a.chain is None or not unplaced)}
    return widths.pop() if len(widths) == 1 else None


def _is_called(stage: StageAccesses) -> bool:
    """True for a function that another calls: its guarantees depend on its callers."""
    name, functions = stage.code.function.name, stage.code.module.functions
    return len(functions) > 1 and any(
        stage.code.language.shared_use(instruction).callee == name
        for function in functions
        for instruction in function.instructions
        if instruction.kind is EventKind.BRANCH
    )


def _causes(
    access: MemoryAccess, width: int, first: StageAccesses, layouts: StageAccesses | None, analysis: AxisAnalysis
) -> tuple[NarrowCause, ...]:
    """The causes that limit an access to its width."""
    roles = first.operand_roles(access)
    types = first.code.language.tensor_types(first.code.instructions[access.index], first.code.module)
    if roles is None or len(roles.address) != 1:
        return ()  # a descriptor
    if not types:
        return (NarrowCause(NarrowReason.SCALAR, width, "", access.line),)
    tile, size = types[0], types[0].bits // 8
    per_thread = _bytes_per_thread(tile, layouts)
    if (
        min((_contiguous_elements(encoding) for encoding, _ in _encodings(access, layouts)), default=0) * size
        > per_thread
    ):
        # A slice of a larger layout: several threads hold the same elements, so the tile does not limit them.
        per_thread = min(MAX_BYTES, tile.size)
    if max(per_thread, size) == width:  # no stricter limit applied
        matrix = _matrix_layout(access, width, layouts)
        return (NarrowCause(NarrowReason.TILE, width, "", access.line),) if matrix is None else (matrix,)
    pointer = analysis.value_read(access.index, roles.address[0])
    axes = None if pointer is None else analysis.axes(pointer)
    if pointer is None or axes is None or axes.rank != len(tile.shape) or tile.bits < 8:
        return ()
    cap = min(MAX_BYTES, per_thread)
    # The axis along which a thread's elements are contiguous: the longest runs, the last of equals.
    axis = max(range(axes.rank), key=lambda d: (axes.contiguity[d], tile.shape[d] > 1, d))
    causes = list(_CauseSearch(analysis, size, cap).causes_in_address(pointer, axis, access.line, is_pointer=True))
    mask = analysis.value_read(access.index, roles.mask[0]) if roles.mask else None
    if mask is not None:
        causes += _CauseSearch(analysis, size, cap).causes_in_mask(mask, axis)
    if all(cause.limit != width for cause in causes):
        causes += _layout_cause(access, width, size, layouts)
    unique = {(cause.reason, cause.name): cause for cause in reversed(causes) if cause.limit == width}
    return tuple(reversed(unique.values()))


def _bytes_per_thread(tile: TensorType, layouts: StageAccesses | None) -> int:
    """Bytes of a tile per thread of the block; WIDEST if the number of threads is unknown."""
    if layouts is None or layouts.code.function.partitions:
        return MAX_BYTES
    launch = layouts.code.language.launch_parameters(layouts.code.module)
    # Triton 2.0 does not give the width of a warp: it supported NVIDIA only.
    threads = (launch.warps or 0) * (launch.lanes or NVIDIA_LANES) * (launch.ctas or 1)
    return tile.size // threads if threads else MAX_BYTES


NVIDIA_LANES = 32


def _layout_cause(access: MemoryAccess, width: int, size: int, layouts: StageAccesses | None) -> list[NarrowCause]:
    """The layout, if it gives a thread exactly as many contiguous elements as the load is wide.

    For layouts of matrix operations it is only known that nothing else limited the load.
    """
    matrix = _matrix_layout(access, width, layouts)
    if matrix is not None:
        return [matrix]
    for encoding, line in _encodings(access, layouts):
        if _contiguous_elements(encoding) * size == width:
            return [NarrowCause(NarrowReason.LAYOUT, width, encoding.root.name, line)]
    return []


def _matrix_layout(access: MemoryAccess, width: int, layouts: StageAccesses | None) -> NarrowCause | None:
    """The layout of a matrix operation, or of a row or column of one, if the access has it."""
    for encoding, line in _encodings(access, layouts):
        name = next((layout.name for layout in encoding.chain if layout.kind in _OF_OPERANDS), None)
        if name is not None:
            return NarrowCause(NarrowReason.LAYOUT, width, name, line)
    return None


def _encodings(access: MemoryAccess, layouts: StageAccesses | None) -> Iterator[tuple[Encoding, int]]:
    """The layouts of an access in TTGIR, each with its line."""
    if layouts is None:
        return
    for other in layouts.accesses_at(access):
        instruction = layouts.code.instructions[other.index]
        for tensor_type in layouts.code.language.tensor_types(instruction, layouts.code.module):
            if tensor_type.encoding is not None:
                yield tensor_type.encoding, other.line


def _contiguous_elements(encoding: Encoding) -> int:
    """Elements per thread along the fastest axis of a blocked layout, or of a slice of one; else 0."""
    blocked = encoding.root
    if blocked.size_per_thread is None or blocked.order is None:
        return 0
    removed_dims = {layout.dim for layout in encoding.chain}
    axis = next((axis for axis in blocked.order if axis not in removed_dims), None)
    return blocked.size_per_thread[axis] if axis is not None and axis < len(blocked.size_per_thread) else 0


class _CauseSearch:
    """Searches the sums that form an address for terms that allow less than `cap` bytes."""

    def __init__(self, analysis: AxisAnalysis, size: int, cap: int) -> None:
        self.analysis, self.size, self.cap = analysis, size, cap
        self.visited: set[tuple[int, int | None]] = set()

    def causes_in_address(self, value: int, axis: int | None, line: int, *, is_pointer: bool) -> Iterator[NarrowCause]:
        """Causes in the terms of an address. `axis` is None for values equal along the fast axis."""
        pending: list[tuple[int, int | None, int, bool]] = [(value, axis, line, is_pointer)]
        while pending:
            value, axis, line, is_pointer = pending.pop()
            if (value, axis) in self.visited:
                continue
            self.visited.add((value, axis))
            instruction, operation = self.analysis.definition(value), self.analysis.operation(value)
            line = line if instruction is None else instruction.line
            is_passed = instruction is None and self.analysis.argument(value) is None and value >= 0
            if is_passed or (operation is not None and operation.role in _SUMS):
                inputs = enumerate(self.analysis.inputs(value))
                terms = [(source, axis, line, is_pointer and (is_passed or not n)) for n, source in inputs]
                pending += reversed(terms)
                continue
            sources = self.analysis.sources(value, axis)
            if sources is not None:
                pending += [(source, source_axis, line, is_pointer) for source, source_axis in reversed(sources)]
                continue
            limit = self._limit(value, axis, is_pointer=is_pointer)
            if limit is not None and limit < self.cap:
                yield from self._explain_term(value, axis, limit, line)

    def causes_in_mask(self, value: int, axis: int) -> Iterator[NarrowCause]:
        """Causes in the comparisons that form a mask."""
        pending = [(value, axis)]
        while pending:
            value, axis = pending.pop()
            if (value, axis) in self.visited:
                continue
            self.visited.add((value, axis))
            instruction, operation = self.analysis.definition(value), self.analysis.operation(value)
            if instruction is None or operation is None or operation.role is AxisRole.LOGIC:
                pending += [(source, axis) for source in reversed(self.analysis.inputs(value))]
                continue
            sources = self.analysis.sources(value, axis)
            if sources is not None:
                pending += [(source, along) for source, along in reversed(sources) if along is not None]
                continue
            axes = self.analysis.axes(value)
            if axes is not None and axis < axes.rank and axes.constancy[axis] * self.size < self.cap:
                names = self._unaligned_arguments(value) or [""]
                limit = max(axes.constancy[axis] * self.size, self.size)
                yield from (NarrowCause(NarrowReason.MASK, limit, name, instruction.line) for name in names)

    def _limit(self, value: int, axis: int | None, *, is_pointer: bool) -> int | None:
        """Bytes along the fast axis that a term keeps contiguous; None if nothing is known about it."""
        axes = self.analysis.axes(value)
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

    def _explain_term(self, value: int, axis: int | None, limit: int, line: int) -> Iterator[NarrowCause]:
        instruction, name = self.analysis.definition(value), self.analysis.argument(value)
        if name is not None:
            yield NarrowCause(NarrowReason.UNALIGNED, limit, name.lstrip("%"), line)
            return
        if instruction is None:  # an induction variable
            names = self._unaligned_arguments(value)
            yield from (NarrowCause(NarrowReason.UNALIGNED, limit, name, line) for name in names)
            if not names:
                yield NarrowCause(NarrowReason.OFFSET, limit, "", line)
            return
        role = self._role(value)
        if instruction.kind in LOADS:
            yield NarrowCause(NarrowReason.GATHER, limit, self.analysis.name(value), line)
        elif role is AxisRole.REMAINDER:
            bound = [name for divisor in self.analysis.inputs(value)[1:] for name in self._names(divisor)]
            yield NarrowCause(NarrowReason.MODULO, limit, bound[0] if bound else "", line)
        elif role in (AxisRole.DIVIDE, AxisRole.SHIFT_RIGHT):
            yield NarrowCause(NarrowReason.DIVISION, limit, next(iter(self._names(value)), ""), line)
        elif role in (AxisRole.MULTIPLY, AxisRole.SHIFT_LEFT):
            yield from self._explain_product(value, axis, limit, line)
        elif role in (AxisRole.CONSTANT, AxisRole.RANGE, AxisRole.PROGRAM):
            yield NarrowCause(NarrowReason.OFFSET, limit, "", line)

    def _explain_product(self, value: int, axis: int | None, limit: int, line: int) -> Iterator[NarrowCause]:
        factors = self.analysis.inputs(value)
        fixed = factors if axis is None else [f for f in factors if self._is_constant_along(f, axis)]
        if len(fixed) < len(factors):
            names = [name for factor in fixed for name in self._names(factor)] or [""]
            yield from (NarrowCause(NarrowReason.STRIDE, limit, name, line) for name in names)
            return
        names = self._unaligned_arguments(value)
        yield from (NarrowCause(NarrowReason.UNALIGNED, limit, name, line) for name in names)
        if not names:
            spread = map(self.analysis.broadcast_source, factors)
            quotient = next((value for value in spread if self._role(value) is AxisRole.DIVIDE), None)
            if quotient is not None:
                yield from self._explain_term(quotient, None, limit, line)
            else:
                yield NarrowCause(NarrowReason.OFFSET, limit, "", line)

    def _role(self, value: int) -> AxisRole:
        operation = self.analysis.operation(value)
        return AxisRole.NONE if operation is None else operation.role

    def _is_constant_along(self, value: int, axis: int) -> bool:
        axes = self.analysis.axes(value)
        return axes is not None and axis < axes.rank and axes.constancy[axis] > 1

    def _names(self, value: int) -> list[str]:
        """The arguments that a value depends on, or its constant value."""
        axes = self.analysis.axes(value)
        if axes is not None and axes.value is not None:
            return [str(axes.value)]
        return [name for name, _ in self._arguments(value)]

    def _unaligned_arguments(self, value: int) -> list[str]:
        """The arguments of a value that are not known to be sufficiently divisible."""
        return [name for name, axes in self._arguments(value) if axes.divisibility[0] * self.size < MAX_BYTES]

    def _arguments(self, value: int) -> list[tuple[str, Axes]]:
        axes_by_name: dict[str, Axes] = {}
        pending, visited = [value], set[int]()
        while pending:
            current = pending.pop()
            if current in visited:
                continue
            visited.add(current)
            name, axes = self.analysis.argument(current), self.analysis.axes(current)
            if name is not None and axes is not None:
                axes_by_name[name.lstrip("%")] = axes
            instruction = self.analysis.definition(current)
            if instruction is None or instruction.kind not in LOADS:
                pending += reversed(self.analysis.inputs(current))
        return list(axes_by_name.items())

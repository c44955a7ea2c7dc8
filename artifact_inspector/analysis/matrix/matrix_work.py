"""The matrix work of a region: its instructions, the operations of each, and their issuers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.analysis.order.regions import Region, find_in_region
from artifact_inspector.hardware.matrix import WARPS_PER_WARPGROUP
from artifact_inspector.model import EventKind, Instruction, Issuer, MatrixOp
from artifact_inspector.model.encoding import LayoutKind, Vectors

_MATRIX = frozenset({EventKind.MATRIX})


class Tiling(NamedTuple):
    """How a tensor-level layout splits the result of a dot into instructions."""

    unit: str
    """Triton's name of the layout: `nvidia_mma`, `amd_mfma`, `blocked` …; empty if there is none."""
    warps: tuple[int, ...]
    """Warps along each dimension; empty if the layout does not say (tensor memory)."""
    instruction: tuple[int, ...]
    """Extents that one warp's instruction covers, as far as given. Older versions omit K."""
    ctas: int
    """Blocks of a cluster that share the tile."""
    is_matrix: bool
    """True for the layout of a matrix unit, False for that of plain multiply-adds."""


@dataclass(frozen=True, slots=True)
class MatrixWork:
    """The matrix operations of one region with one opcode, shape and types.

    Dots of tensor-level IR are also distinguished by layout, precision and source line.
    """

    op: str
    """In its usual spelling: `mma.sync`, `tt.dot`; the full opcode if its operation is unknown."""
    matrix: MatrixOp | None
    """The operation of one issue; None if unknown (a tcgen05 descriptor made at run time)."""
    count: int
    """Static instructions; in tensor-level IR, dots."""
    along_path: int
    """Maximum number on one path through the region: fewer than `count` if some are alternatives."""
    issuers: int | None
    """Number of warps, warpgroups or CTAs of a block that each issue it; None if unknown."""
    lines: tuple[int, int]
    """First and last line in the stage's file."""
    sources: tuple[str, ...]
    """Lines of the user's code, `file.py:line`, innermost frame, without repetition."""
    tiling: Tiling | None = None
    """Tensor-level IR only."""
    precision: str | None = None
    """Tensor-level IR only, if given: `tf32`, `tf32x3`, `ieee` …"""
    exclusive_sources: tuple[str, ...] = ()
    """Tensor-level IR only: source lines of the region's other dots that share no path with these."""

    @property
    def flop(self) -> int | None:
        """Operations of one pass through the region by the whole block; None if one factor is unknown."""
        if self.matrix is None or self.issuers is None:
            return None
        return self.count * self.matrix.flop * self.issuers


def find_matrix_work(code: FunctionCode, region: Region, warps: int | None) -> tuple[MatrixWork, ...]:
    """The matrix operations directly in a region, most work first.

    Args:
        warps: that run the region: see `warps_of`.
    """
    if not code.has_matrix:
        return ()
    instructions = code.instructions
    indices_by_kind = group_by_key(
        (_kind(instructions[index], code), index) for index in find_in_region(code, region, _MATRIX)
    )
    exclusive_sources = _exclusions(code, indices_by_kind)
    works = [
        MatrixWork(
            op=kind.op,
            matrix=kind.matrix,
            count=len(indices),
            along_path=len(indices) if region.residue is not None else _max_along_path(code, indices),
            issuers=_issuers(kind.matrix, warps),
            lines=(min(instructions[i].line for i in indices), max(instructions[i].line for i in indices)),
            sources=tuple(dict.fromkeys(filter(None, (_source(instructions[i]) for i in indices)))),
            tiling=kind.tiling,
            precision=kind.precision,
            exclusive_sources=exclusive_sources.get(kind, ()),
        )
        for kind, indices in indices_by_kind.items()
    ]
    return tuple(sorted(works, key=lambda work: -(work.flop or 0)))


def warps_of(code: FunctionCode, works: Iterable[MatrixWork], block: int | None) -> int | None:
    """Warps that run a region of tensor-level IR.

    A partition of a warp-specialised kernel has its own warps: those of its layouts. (The metadata's `num_warps` of
    such a kernel is the sum over all partitions.) Otherwise it is all warps of the block, which may be more than the
    layouts of sm_70 have.

    Args:
        works: of the region; of the whole function for a region that tensor-level IR does not have.
        block: warps of a block from the metadata, for IR that does not say.
    """
    if code.function.partitions:
        layout_warps = {prod(work.tiling.warps) for work in works if work.tiling is not None and work.tiling.warps}
        return layout_warps.pop() if len(layout_warps) == 1 else None
    launch_warps = code.language.launch_parameters(code.module).warps
    return block if launch_warps is None else launch_warps


class _Kind(NamedTuple):
    """The properties that instructions counted together share."""

    op: str
    matrix: MatrixOp | None
    tiling: Tiling | None = None
    precision: str | None = None
    source: str | None = None


def _kind(instruction: Instruction, code: FunctionCode) -> _Kind:
    matrix = code.language.matrix(instruction, code.module)
    if matrix is None or matrix.issuer != Issuer.BLOCK:
        return _Kind(instruction.opcode if matrix is None else matrix.op, matrix)
    tiling, precision = _tiling(instruction, code), code.language.input_precision(instruction)
    return _Kind(matrix.op, matrix, tiling, precision, _source(instruction))


def _issuers(matrix: MatrixOp | None, warps: int | None) -> int | None:
    if matrix is None:
        return None
    if matrix.issuer in (Issuer.WARP, Issuer.WAVEFRONT):
        return warps
    if matrix.issuer == Issuer.WARPGROUP:
        return None if warps is None else max(1, warps // WARPS_PER_WARPGROUP)
    return 1


def _tiling(instruction: Instruction, code: FunctionCode) -> Tiling | None:
    # The accumulator has the layout: the last tensor, or the tensor memory that holds it.
    types = code.language.tensor_types(instruction, code.module)
    encodings = [tensor_type.encoding for tensor_type in types if tensor_type.encoding is not None]
    if not encodings:
        return None
    memory = [encoding for encoding in encodings if encoding.kind is LayoutKind.TENSOR_MEMORY]
    encoding = (memory or encodings)[-1]
    root = encoding.root
    extents = (root.warps if root.warps is not None else _extents(root.warp or ()), root.instruction or ())
    warps, tile = (sizes if all(sizes) else () for sizes in extents)  # 0 is not a valid layout
    ctas = code.language.launch_parameters(code.module).ctas or 1
    return Tiling(encoding.name, warps, tile, ctas, encoding.is_matrix)


def _extents(bases: Vectors) -> tuple[int, ...]:
    """Warps along each dimension of a linear layout: each basis vector doubles one dimension.

    A zero vector is a copy: those warps are counted along the first dimension.
    """
    extents: list[int] = []
    for vector in bases:
        if vector:
            extents += [1] * (len(vector) - len(extents))
            extents[next((axis for axis, step in enumerate(vector) if step), 0)] *= 2
    return tuple(extents)


def _source(instruction: Instruction) -> str | None:
    """The innermost frame, which every stage keeps."""
    if not instruction.location:
        return None
    frame = instruction.location[0]
    return f"{frame.file.rpartition('/')[2]}:{frame.line}"


def _max_along_path(code: FunctionCode, indices: list[int]) -> int:
    """Maximum number of some instructions on one path from the function's entry without back edges."""
    in_block = Counter(code.flow.block_of[index] for index in indices)
    if len(in_block) == 1:
        return len(indices)
    rank = code.rank
    max_counts = [0] * len(rank)
    for block in code.flow.order:
        max_counts[block] += in_block[block]
        for successor in code.blocks[block].successors:
            if rank[successor] > rank[block]:
                max_counts[successor] = max(max_counts[successor], max_counts[block])
    return max(max_counts)


def _exclusions(code: FunctionCode, indices_by_kind: dict[_Kind, list[int]]) -> dict[_Kind, tuple[str, ...]]:
    """For dots of tensor-level IR, the lines of dots on none of their paths: branches of an if."""
    blocks = {
        kind: frozenset(code.flow.block_of[index] for index in indices)
        for kind, indices in indices_by_kind.items()
        if kind.source is not None
    }
    if len(frozenset().union(*blocks.values())) < 2:
        return {}
    reached = {kind: _reachable_from(code, kind_blocks) for kind, kind_blocks in blocks.items()}

    def exclude(kind: _Kind, other: _Kind) -> bool:
        return reached[kind].isdisjoint(blocks[other]) and reached[other].isdisjoint(blocks[kind])

    return {
        kind: tuple(
            dict.fromkeys(other.source for other in blocks if other.source is not None and exclude(kind, other))
        )
        for kind in blocks
    }


def _reachable_from(code: FunctionCode, blocks: frozenset[int]) -> set[int]:
    """Some blocks, and all blocks reachable from them without back edges."""
    rank = code.rank
    return set(reachable(blocks, lambda block: (to for to in code.blocks[block].successors if rank[to] > rank[block])))

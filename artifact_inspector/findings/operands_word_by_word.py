"""An operand of matrix instructions is read from shared memory in single words.

`ldmatrix` reads four tiles of 8×8 elements for a warp at once. Without it each lane reads its own registers, at most 4
bytes at a time.

**When it is reported.** In a region at the last stage, at least 16 loads of at most 4 bytes feed `mma.sync` of 16
rows, without a conversion between them. The message also counts the `ldmatrix` of the region. `ldmatrix` transposes
16-bit elements only: other operands along the other side of the tile are read in words.

**What it is likely to cost.** Four times the instructions that `ldmatrix` would take, and bank conflicts if the rows
of the tile are not swizzled for such reads. An operand whose multiplied elements are contiguous (`b` by columns) needs
no transposition.

**What to do.** Store the operand so that the multiplied dimension is contiguous, or convert it to 16 bits before the
product.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.outline import ROW_LOADS
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, describe_region, find_dots
from artifact_inspector.model import EventKind, Stage

MANY = 16
AT_ONCE = 4
"""Registers of a lane that one `ldmatrix.x4` fills. Source: PTX ISA, `ldmatrix`."""
ROWS = 16
"""Of the `mma.sync` whose operands `ldmatrix` lays out. Source: PTX ISA, fragments of m16n8k*."""
HALVES = (("f16", "f16"), ("bf16", "bf16"))


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None or last.stage is not Stage.PTX:
        return
    if last.counts[EventKind.SHARED_LOAD.count_name] - last.counts.get(ROW_LOADS, 0) < MANY:
        return  # without looking for the loads of each operand
    for region in last.regions:
        work = last.work.get(region.id)
        shapes = [] if work is None else [operand.matrix for operand in work.matrix]
        if work is None or any(shape is None or shape.m != ROWS for shape in shapes):
            continue
        by_words = [operand for operand in work.operand_reads if operand.word_reads > operand.row_reads * AT_ONCE]
        word_reads = sum(operand.word_reads for operand in by_words)
        if word_reads < MANY:
            continue
        row_reads = sum(operand.row_reads for operand in work.operand_reads)
        are_halves = all(shape is not None and shape.operands in HALVES for shape in shapes)
        limitation = "" if are_halves else ", but ldmatrix transposes 16-bit elements only"
        sources = tuple(dict.fromkeys(operand.source for operand in by_words if operand.source is not None))
        yield Remark(
            f"{describe_region(region.id)}: {word_reads} loads of 4 bytes or less from shared memory feed mma.sync. "
            f"They fill as many registers as {-(-word_reads // AT_ONCE)} ldmatrix{limitation}. "
            f"The region has {row_reads} ldmatrix",
            last.stage,
            tuple(operand.lines[0] for operand in by_words),
            sources or find_dots(kernel, region.id)[2],
        )


RULE = Rule("AI024", "operands-word-by-word", Severity.NOTE, Consequence.OTHER, _look, __doc__)

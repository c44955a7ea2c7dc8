"""Lanes of a warp touch more global memory than they use.

Memory moves in sectors of 32 bytes, on AMD in cache lines of 64 or 128. Lanes with distant addresses take one each.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), and a source line requests at least twice
the sectors that its bytes would fill if they were contiguous. On AMD, it uses at most 16 bytes of a cache line, as
of such a sector. A store has to use fewer: lanes that hold the results of matrix instructions store pieces of 16 bytes,
and the next instruction of the line stores their neighbours. The excess is at least a tenth of all.

**What it is likely to cost.** The L1 and the L2 move unused bytes, and so does device memory unless other warps use
them.

**What to do.** Let neighbouring lanes access neighbouring elements: index the contiguous dimension with `tl.arange`,
as the last one of the tile. To use the tile the other way round, load it so and transpose it (`tl.trans`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, report_nothing
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import LinePrediction, Prediction

LEAST_FACTOR, LEAST_SHARE, SECTOR = 2, 0.1, 32


def _look(prediction: Prediction) -> Iterator[Remark]:
    is_amd = prediction.is_amd
    caches = parse_target(prediction.target).gpu.caches
    # the same unused bytes as of a sector: other accesses may use the rest of a longer line
    factor = LEAST_FACTOR * (caches.line // SECTOR if is_amd and caches is not None else 1)
    unit = "cache lines" if is_amd else "sectors"
    lines_by_source: dict[str, list[tuple[LinePrediction, int, int]]] = {}
    for line in prediction.by_line:
        requested = line.cache_lines if is_amd else line.sectors
        ideal = line.cache_lines_ideal if is_amd else line.sectors_ideal
        if requested:
            lines_by_source.setdefault(line.source or "the kernel", []).append((line, requested, ideal or 0))
    total = sum(requested for lines in lines_by_source.values() for _, requested, _ in lines)
    for source, lines in lines_by_source.items():
        requested, ideal = (sum(counts) for counts in tuple(zip(*lines, strict=True))[1:])
        # the result of a matrix instruction is stored in pieces, whose neighbours the next instruction stores
        is_piece = is_amd and requested == factor * ideal and all(line.is_amd_store for line, *_ in lines)
        if not ideal or requested < factor * ideal or is_piece or requested - ideal < LEAST_SHARE * total:
            continue
        yield Remark(
            f"{source}: {requested:,} {unit} of global memory instead of {ideal:,}: "
            f"{ideal / requested:.0%} of the moved bytes are used",
            Stage.AMDGCN if is_amd else Stage.SASS,
            tuple(line.line for line, *_ in lines),
            tuple(dict.fromkeys(line.source for line, *_ in lines if line.source)),
        )


RULE = Rule("AI017", "uncoalesced-access", Severity.WARNING, Consequence.OTHER, report_nothing, __doc__, _look)

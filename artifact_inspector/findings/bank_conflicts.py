"""Lanes of a warp conflict on banks of shared memory.

Shared memory has 32 banks of four bytes. Lanes of a warp that access different words of one bank are served one after
the other.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), and the passes that conflicts add at a
source line are at least a twentieth of all passes. Copies from global memory (`LDGSTS`) count too, by the rules that
were measured for them.

**What it is likely to cost.** Each added pass occupies the load/store unit for a cycle, for all warps of the
multiprocessor. On an H200, 90 of 105 planned launches with that share took 3 % less time or better
without the conflicts (measurements: `docs/lab/prediction.md`).

**What to do.** Let neighbouring lanes access neighbouring words: swap the dimensions of the tile, avoid `tl.trans`, or
try another width of the tile. `inspect-kernel advise` compiles and simulates such tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, report_nothing
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import LinePrediction, Prediction

LEAST_SHARE = 0.05  # of all passes; measured, docs/lab/prediction.md


def _look(prediction: Prediction) -> Iterator[Remark]:
    total = prediction.counters.shared_wavefronts
    if not total:
        return
    lines_by_source: dict[str, list[LinePrediction]] = {}
    for line in prediction.by_line:
        if line.wavefronts:
            lines_by_source.setdefault(line.source or "the kernel", []).append(line)
    for source, lines in lines_by_source.items():
        wavefronts = sum(line.wavefronts or 0 for line in lines)
        ideal = sum(line.wavefronts_ideal or 0 for line in lines)
        if not ideal or wavefronts - ideal < LEAST_SHARE * total:
            continue
        conflicting = [line for line in lines if (line.wavefronts or 0) > (line.wavefronts_ideal or 0)]
        opcodes = ", ".join(dict.fromkeys(line.opcode for line in conflicting))
        yield Remark(
            f"{source}: bank conflicts: {wavefronts:,} passes over shared memory instead of {ideal:,} ({opcodes}), "
            f"{(wavefronts - ideal) / total:.0%} of all passes of the launch",
            Stage.SASS,
            tuple(line.line for line in conflicting),
            tuple(dict.fromkeys(line.source for line in conflicting if line.source)),
        )


RULE = Rule("AI016", "bank-conflicts", Severity.WARNING, Consequence.OTHER, report_nothing, __doc__, _look)

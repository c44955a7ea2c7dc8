"""Minimum time that a warp takes to issue a region, according to the control codes of the machine code.

Source: the control codes of SASS (`model.Control`). Each instruction gives the cycles before the next may issue, and
the scoreboards that it waits for first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.regions import Region


class IssueWait(NamedTuple):
    """An instruction that waits for scoreboards."""

    line: int
    scoreboards: tuple[int, ...]
    """0 to 5: the scoreboards that must be clear."""


@dataclass(frozen=True, slots=True)
class IssueEstimate:
    """One pass of one warp through a region, including guarded blocks."""

    cycles: int
    """Sum of the stall counts: the time without any waiting."""
    instructions: int
    waits: tuple[IssueWait, ...]
    """Instructions where the warp may stall longer."""


def estimate_issue(code: FunctionCode, region: Region) -> IssueEstimate | None:
    """The estimate for a region; None for code without control codes."""
    controls = code.function.control_codes
    if not controls or region.residue is not None:
        return None
    indices = code.indices(region.blocks)
    waits = tuple(
        IssueWait(code.instructions[i].line, tuple(b for b in range(6) if controls[i].wait_mask >> b & 1))
        for i in indices
        if controls[i].wait_mask
    )
    return IssueEstimate(sum(controls[i].stall for i in indices), len(indices), waits)

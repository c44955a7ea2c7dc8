"""Warns of ranked launches whose machine code reads registers that nothing has written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import place_tensors
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.ranking import RankedLaunch
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.memory_checks.shared_hazards import find_unwritten_registers

MOST_CHECKED = 3
"""Launches that are checked, from the first: those that a reader would use."""


def warn_of_unwritten_registers(
    rows: Sequence[RankedLaunch], candidates: Sequence[RankingCandidate], disassemble: Disassemble | None
) -> list[RankedLaunch]:
    """The ranking with a note on each of the first launches whose results are garbage by an error of the compiler."""
    checked = list(rows)
    for at, row in enumerate(checked[:MOST_CHECKED]):
        if row.score is None:
            continue
        candidate = candidates[row.launch]
        try:
            loaded = load_kernel(candidate.artifact, disassemble)
            loaded, launch = match_launch(loaded, candidate.request, candidate.constants)
            problems = find_unwritten_registers(loaded, place_tensors(launch))
        except InspectorError:
            continue  # its row has the reason
        for problem in problems:
            name = row.label or row.hash[:8]
            note = f"{name} computes garbage: {problem.site}: {problem.message}. {problem.suggestion}"
            checked[at] = replace(row, notes=(*row.notes, note))
    return checked

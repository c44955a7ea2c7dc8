"""The candidates of a ranking: their labels, and which of them have identical binaries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.launch import evaluate_extent
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.binaries import read_loaded_sections
from artifact_inspector.files.reader import read_file


@dataclass(frozen=True, slots=True)
class RankingCandidate:
    """A launch that takes part in a ranking."""

    artifact: Artifact
    request: LaunchRequest
    constants: Mapping[str, Any]
    """What the kernel was compiled with, as far as known."""
    label: str = ""
    """Its name; by default the constants and options that distinguish it."""


def label_candidates(candidates: Sequence[RankingCandidate]) -> list[str]:
    """The constants and options that distinguish each launch from the others."""
    rows = []
    for candidate in candidates:
        arguments = {**candidate.request.arguments, **candidate.constants}
        row = {name: value for name, value in arguments.items() if isinstance(value, (int, float, str, bool))}
        for option in ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu"):
            value = candidate.artifact.metadata.get(option)
            if isinstance(value, int):
                row[option] = value
        rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    differing_names = [name for name in names if len({str(row.get(name)) for row in rows}) > 1]
    return [
        candidate.label or " ".join(f"{name}={row[name]}" for name in differing_names if name in row)
        for candidate, row in zip(candidates, rows, strict=True)
    ]


def find_identical_binaries(candidates: Sequence[RankingCandidate]) -> list[int]:
    """For each launch the index of the first launch with the same binary, grid and arguments; may be its own.

    An autotuner's list often repeats binaries: `num_stages` has no effect if no loop is pipelined.
    """
    first: dict[Hashable, int] = {}
    return [
        first.setdefault(_launch_identity(candidate, position), position)
        for position, candidate in enumerate(candidates)
    ]


def _launch_identity(candidate: RankingCandidate, position: int) -> Hashable:
    """Everything that a GPU receives; the index itself if it cannot be read."""
    artifact, request = candidate.artifact, candidate.request
    arguments = {**request.arguments, **candidate.constants}
    suffix = "cubin" if "cubin" in artifact.files else "ptx"
    try:
        content = read_file(artifact, suffix)
        code: Hashable = content if suffix == "ptx" else tuple(read_loaded_sections(content, suffix).items())
        grid = tuple(
            evaluate_extent(extent, arguments) if isinstance(extent, str) else extent for extent in request.grid
        )
    except (CacheError, UsageError, KeyError):
        return position
    return (
        code,
        str(artifact.target),
        artifact.shared_bytes,
        artifact.num_warps,
        artifact.metadata.get("num_ctas"),
        str(artifact.metadata.get("cluster_dims")),
        grid,
        tuple(request.kernel_arguments(candidate.constants).items()),
    )

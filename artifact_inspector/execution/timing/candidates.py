"""The candidates of a ranking: their labels, and which of them have identical binaries."""

from __future__ import annotations

import posixpath
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.launch import Tensor, evaluate_extent
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
    """The constants, release, options and block shapes of descriptors that distinguish each launch from the others.

    The grid is part of a label if no constant or block shape differs, or labels would be equal.
    """
    rows = [_distinguishing_values(candidate) for candidate in candidates]
    options: list[dict[str, Any]] = [
        {"triton": str(x.artifact.triton_version)}
        | {name: value for name in DISTINGUISHING_OPTIONS if isinstance(value := x.artifact.metadata.get(name), int)}
        for x in candidates
    ]
    named_rows = [{**row, **row_options} for row, row_options in zip(rows, options, strict=True)]
    labels = _format_differences(named_rows)
    if len(set(labels)) < len(labels) or not any(_format_differences(rows)):
        labels = _format_differences(
            [{**row, "grid": _grid_text(candidate)} for candidate, row in zip(candidates, named_rows, strict=True)]
        )
    if len(set(labels)) < len(labels):  # of several caches
        caches = [posixpath.dirname(x.artifact.directory) for x in candidates]
        named_rows = [{**row, "cache": cache} for row, cache in zip(named_rows, caches, strict=True)]
        labels = _format_differences(named_rows)
    if len(set(labels)) < len(labels):  # an edit of the source
        rows = [{**row, "hash": x.artifact.hash[:8]} for x, row in zip(candidates, named_rows, strict=True)]
        labels = _format_differences(rows)
    return [candidate.label or label for candidate, label in zip(candidates, labels, strict=True)]


DISTINGUISHING_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu")


def _distinguishing_values(candidate: RankingCandidate) -> dict[str, Any]:
    """The numbers and words among the arguments and constants, and the block shapes of descriptors."""
    arguments = {**candidate.request.arguments, **candidate.constants}
    row = {name: value for name, value in arguments.items() if isinstance(value, (int, float, str, bool))}
    for name, tensor in arguments.items():
        if isinstance(tensor, Tensor) and tensor.block_shape and name not in candidate.request.inherited_names:
            row[name] = "x".join(map(str, tensor.block_shape))
    return row


def _format_differences(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each row, the names and values that are not the same in all rows."""
    names = dict.fromkeys(name for row in rows for name in row)
    differing_names = [name for name in names if len({str(row.get(name)) for row in rows}) > 1]
    return [" ".join(f"{name}={row[name]}" for name in differing_names if name in row) for row in rows]


def _grid_text(candidate: RankingCandidate) -> str:
    """The grid as `64x8`, without trailing ones; an expression as it is where it cannot be computed."""
    arguments = {**candidate.request.arguments, **candidate.constants}
    extents: list[object] = []
    for extent in candidate.request.grid:
        try:
            extents.append(evaluate_extent(extent, arguments) if isinstance(extent, str) else extent)
        except UsageError:
            extents.append(extent)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return "x".join(map(str, extents))


def find_identical_binaries(candidates: Sequence[RankingCandidate]) -> list[int]:
    """For each launch the index of the first launch with the same binary, grid and arguments; may be its own.

    An autotuner's list often repeats binaries: `num_stages` has no effect if no loop is pipelined.
    """
    first: dict[Hashable, int] = {}
    return [
        first.setdefault(launch_identity(candidate, position), position)
        for position, candidate in enumerate(candidates)
    ]


def launch_identity(candidate: RankingCandidate, position: int) -> Hashable:
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

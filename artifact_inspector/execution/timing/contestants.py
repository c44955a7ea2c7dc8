"""The candidates of a ranking: their labels, and which of them have identical binaries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.launch import evaluate_extent
from artifact_inspector.execution.requests import Request
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.binaries import read_loaded
from artifact_inspector.files.reading import read_file


@dataclass(frozen=True, slots=True)
class Contestant:
    """A launch that takes part in a ranking."""

    artifact: Artifact
    request: Request
    constants: Mapping[str, Any]
    """What the kernel was compiled with, as far as known."""
    label: str = ""
    """Its name; by default the constants and options that distinguish it."""


def label_launches(contestants: Sequence[Contestant]) -> list[str]:
    """The constants and options that distinguish each launch from the others."""
    rows = []
    for one in contestants:
        held = {**one.request.arguments, **one.constants}
        row = {name: value for name, value in held.items() if isinstance(value, (int, float, str, bool))}
        for option in ("num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu"):
            value = one.artifact.metadata.get(option)
            if isinstance(value, int):
                row[option] = value
        rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    varied = [name for name in names if len({str(row.get(name)) for row in rows}) > 1]
    return [
        one.label or " ".join(f"{name}={row[name]}" for name in varied if name in row)
        for one, row in zip(contestants, rows, strict=True)
    ]


def find_twins(contestants: Sequence[Contestant]) -> list[int]:
    """For each launch the index of the first launch with the same binary, grid and arguments; may be its own.

    An autotuner's list often repeats binaries: `num_stages` has no effect if no loop is pipelined.
    """
    first: dict[Hashable, int] = {}
    return [first.setdefault(_identity(one, at), at) for at, one in enumerate(contestants)]


def _identity(one: Contestant, at: int) -> Hashable:
    """Everything that a GPU receives; the index itself if it cannot be read."""
    artifact, request = one.artifact, one.request
    held = {**request.arguments, **one.constants}
    suffix = "cubin" if "cubin" in artifact.files else "ptx"
    try:
        content = read_file(artifact, suffix)
        code: Hashable = content if suffix == "ptx" else tuple(read_loaded(content, suffix).items())
        grid = tuple(evaluate_extent(part, held) if isinstance(part, str) else part for part in request.grid)
    except (CacheError, UsageError, KeyError):
        return at
    return (
        code,
        str(artifact.target),
        artifact.shared_bytes,
        artifact.num_warps,
        artifact.metadata.get("num_ctas"),
        str(artifact.metadata.get("cluster_dims")),
        grid,
        tuple(request.passed(one.constants).items()),
    )

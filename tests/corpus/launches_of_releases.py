"""Launches on paper of what every release compiles for every target, held against Triton's interpreter.

    python tests/corpus/launches_of_releases.py DIR [VERSION…]

compiles what DIR/VERSION lacks, runs it all, and prints every launch that is not equal or has a counter that is
null, and a table of both.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from launches_on_paper import INTERPRETED, SWEPT, ranges

from artifact_inspector.compiling import KernelRequest, compile_kernels
from artifact_inspector.compiling.ask.manifest import read_manifest
from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_counters import NOT_ON_AMD
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import SimulatedLaunch, simulate_launch
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.objdump import binary_disassembler

VERSIONS = ("3.0.0", "3.1.0", "3.2.0", "3.3.1", "3.4.0", "3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0")
TARGETS = (
    "sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201",
)  # fmt: skip
KERNELS = tuple(name for name, paper in SWEPT.items() if paper.module == f"kernels.{name}")


@dataclass(frozen=True)
class Outcome:
    """What became of one launch."""

    version: str
    kernel: str
    target: str
    differs: str = ""
    """How the bytes are not the interpreter's, or why the launch was refused."""
    unknown: str = ""
    """A counter that is null, and why."""


def outcomes(root: Path, version: str) -> Iterator[Outcome]:
    """Each compiled kernel of a cache that has a launch here."""
    places = {
        row["directory"]: (row["place"], str(row["target"])) for row in read_manifest(root) if row.get("directory")
    }
    for entry in open_cache(root).entries:
        place, target = places.get(entry.directory, ("", ""))
        if place in KERNELS:
            yield Outcome(version, place, target, *_held(entry, place))


def _held(entry: Artifact, name: str) -> tuple[str, str]:
    paper = SWEPT[name]
    given = {
        key: Tensor(*_tensor(value)) if isinstance(value, tuple) else value for key, value in paper.arguments.items()
    }
    try:
        loaded, launch = match_launch(load_kernel(entry, binary_disassembler()), LaunchRequest(paper.grid, given))
        run = simulate_launch(loaded, launch)
    except InspectorError as error:
        return error.message, ""
    found = predict_counters(run)
    if found.out_of_bounds:
        return f"{found.out_of_bounds_lanes} lanes outside: {found.out_of_bounds[0]}", ""
    inherent = NOT_ON_AMD if found.is_amd else ()
    lacks = [f"{key}: {why}" for key, why in found.unknown.items() if key not in inherent]
    if run.unfinished or any("unique_bytes" in key for key in found.unknown):
        return "", lacks[0]
    wrong = [key for key, touched in _touched(run).items() if touched != INTERPRETED_BYTES[name][key]]
    return (f"bytes of {', '.join(wrong)}" if wrong else ""), "; ".join(lacks[:1])


INTERPRETED_BYTES: dict[str, Any] = json.loads(INTERPRETED.read_text())


def _tensor(value: Sequence[Any]) -> tuple[Any, ...]:
    shape, kind, *values = value
    return (shape, kind, (), None, *values)


def _touched(run: SimulatedLaunch) -> dict[str, Any]:
    def whole(marks: Any, region: Any) -> Any:
        run.memory.count_unique_bytes()
        first = region.start - region.base
        return [[a - first, b - first] for a, b in ranges(np.repeat(marks != 0, region.granule_bytes))]

    return {
        region.name: {"read": whole(region.read_marks, region), "written": whole(region.written_marks, region)}
        for region in run.memory.tensors
    }


def compile_missing(root: Path, version: str, targets: Sequence[str] = TARGETS) -> None:
    """Compile what a cache lacks; what a release refuses is asked for again."""
    held = {(row["place"], str(row["target"])) for row in read_manifest(root)}
    for target in targets:
        missing = [KernelRequest(name) for name in KERNELS if (name, target) not in held]
        if missing:
            compile_kernels(missing, [target], root, tritons=[version])


def main(root: Path, versions: Sequence[str]) -> None:
    """Print the table."""
    rows: list[Outcome] = []
    for version in versions:
        compile_missing(root / version, version)
        rows += outcomes(root / version, version)
    for row in rows:
        if row.differs or row.unknown:
            print(
                row.version, row.target, row.kernel, "DIFFERS" if row.differs else "unknown", row.differs or row.unknown
            )
    print(table(rows))


def table(rows: Sequence[Outcome]) -> str:
    """Versions × targets: launches, and of these those with a counter that is null."""
    count = Counter((row.version, row.target) for row in rows)
    lacking = Counter((row.version, row.target) for row in rows if row.unknown)
    wrong = Counter((row.version, row.target) for row in rows if row.differs)
    lines = ["| Triton | " + " | ".join(TARGETS) + " |", "|---" * (len(TARGETS) + 1) + "|"]
    for version in dict.fromkeys(row.version for row in rows):
        cells = []
        for target in TARGETS:
            key = version, target
            text = str(count[key] - lacking[key] - wrong[key]) if count[key] else "–"
            text += f" + {lacking[key]}" if lacking[key] else ""
            cells.append(text + (f" ✗ {wrong[key]}" if wrong[key] else ""))
        lines.append(f"| {version} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or VERSIONS)

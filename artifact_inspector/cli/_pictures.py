"""`--svg WHAT`: the pictures that each command draws, and writing them.

Each picture is imported when it is drawn: one of stored facts needs neither the parsers nor the simulator.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._loading import inspect_kernels, open_one
from artifact_inspector.cli._options import KERNEL_PICTURES, require_picture
from artifact_inspector.errors import UsageError
from artifact_inspector.files.writer import write_text
from artifact_inspector.report.console import write

if TYPE_CHECKING:
    from artifact_inspector.cli._groups import ListOptions, MachineCode, Selection
    from artifact_inspector.cli._launches import LaunchPair
    from artifact_inspector.comparison.pair import Comparison
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.timing.residency import Residency
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.hardware.peaks import Peaks
    from artifact_inspector.model import Stage


def draw_kernel(selection: Selection, code: MachineCode, view: ListOptions, picture: str, output: Path | None) -> None:
    """Write a picture of one kernel."""
    require_picture(picture, KERNEL_PICTURES)
    entry, disassemble, stages = open_one(selection, code, view, "--svg draws")
    pictures: list[str] = []

    def draw(kernel: KernelFacts) -> None:
        pictures.append(_draw_facts(kernel, picture, view.region, stages))

    list(inspect_kernels((entry,), disassemble, draw, index=not view.no_index))
    write_svg(output, pictures[0])


def _draw_facts(kernel: KernelFacts, picture: str, region: str | None, stages: Sequence[Stage]) -> str:
    if picture == "timeline":
        from artifact_inspector.pictures.timeline import timeline

        return timeline(kernel, region, stages or None)
    if picture == "timetable":
        from artifact_inspector.pictures.timetable import timetable

        return timetable(kernel, region)
    if picture == "partitions":
        from artifact_inspector.pictures.partitions import partitions

        return partitions(kernel)
    if picture == "shared":
        from artifact_inspector.pictures.resources import shared_map

        return shared_map(kernel)
    from artifact_inspector.pictures.resources import occupancy_bars

    return occupancy_bars(kernel)


def draw_launches(predictions: Sequence[Prediction], picture: str, peaks: Peaks | None, line: str | None = None) -> str:
    """The SVG of launches: of one, except for the roofline.

    Args:
        line: source line whose shared-memory access `banks` draws.
    """
    from artifact_inspector.execution.roofline import find_roofline
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.pictures.bank_conflicts import bank_conflicts, find_access
    from artifact_inspector.pictures.cta_grid import cta_grid
    from artifact_inspector.pictures.roofline import roofline

    if picture == "roofline":
        peaks_of = [peaks or (find_peaks(x.time.gpu) if x.time is not None else None) for x in predictions]
        points = [(x.kernel, find_roofline(x.counters, y)) for x, y in zip(predictions, peaks_of, strict=True)]
        return roofline([(name, point) for name, point in points if point is not None])
    if len(predictions) != 1:
        raise UsageError(
            f"--svg {picture} draws one launch; {len(predictions)} match.", "Give a NAME or hash that fits one."
        )
    if picture == "banks":
        return bank_conflicts(predictions[0], find_access(predictions[0], line))
    return cta_grid(predictions[0])


def model_residency(
    pairs: Sequence[LaunchPair], disassemble: Disassemble | None, gpu: str | None, steps: int
) -> Residency:
    """The model of one launch's resident warps."""
    from artifact_inspector.execution.timing.candidates import RankingCandidate
    from artifact_inspector.execution.timing.residency import find_residency

    if len(pairs) != 1:
        raise UsageError(
            f"--svg residency and --trace show one launch; {len(pairs)} match.", "Give a NAME or hash that fits one."
        )
    entry, request = pairs[0]
    candidate = RankingCandidate(entry, request, entry.constants)
    return find_residency(candidate, disassemble, gpu=gpu, limit=steps)


def write_residency(
    pairs: Sequence[LaunchPair],
    disassemble: Disassemble | None,
    gpu: str | None,
    steps: int,
    output: Path | None,
    trace: Path | None,
) -> None:
    """Write the resident warps of one launch: the trace if it has a path, else the picture."""
    model = model_residency(pairs, disassemble, gpu, steps)
    if trace is None:
        from artifact_inspector.pictures.residency import residency

        write_svg(output, residency(model))
        return
    from artifact_inspector.report.exchange.chrome_trace import chrome_trace

    write_text(trace, json.dumps(chrome_trace(model)) + "\n")


def draw_pair(pair: Comparison | None, responsible_pass: str = "") -> str:
    """The SVG of two kernels.

    Args:
        responsible_pass: the pass that made them differ; empty where it is not known.
    """
    from artifact_inspector.pictures.pair_timelines import pair_timelines
    from artifact_inspector.report.diff import side_labels

    if pair is None:
        raise UsageError("--svg draws two kernels.", "Give one kernel per side: CACHE:NAME.")
    return pair_timelines(pair, side_labels(pair), responsible_pass=responsible_pass)


def write_svg(out: Path | None, svg: str) -> None:
    """Write a picture to a file; None is standard output."""
    if out is None:
        write(svg, sys.stdout)
    else:
        write_text(out, svg)

"""The simulated launch of a kernel on its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from artifact_inspector.execution.prediction import LinePrediction, Prediction
from artifact_inspector.execution.timing.residency import Residency
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.report.html.code import Heat
from artifact_inspector.report.html.drawings import PictureSection
from artifact_inspector.report.html.finding import FindingView, view_finding
from artifact_inspector.report.html.launch_drawings import draw_launch
from artifact_inspector.report.html.sources import Sources
from artifact_inspector.report.html.table import UNKNOWN_CELL, TableColumn, TableData
from artifact_inspector.report.html.table import TableRow as TableLine
from artifact_inspector.report.html.table_page import DetailPage, TablePage, render_pages
from artifact_inspector.report.prediction import describe_counters, describe_limits, describe_order


@dataclass(frozen=True, slots=True)
class LaunchView:
    """The content of the launch section."""

    title: str
    counters: tuple[tuple[str, str], ...]
    findings: tuple[FindingView, ...]
    order: tuple[str, ...]
    """Sentences on the order of its CTAs."""
    limits: tuple[str, ...]
    """Out-of-bounds accesses and unknown counters."""
    is_sampled: bool
    drawings: tuple[PictureSection, ...]


def view_launch(
    prediction: Prediction, sources: Sources, peaks: Peaks | None, residency: Residency | None = None
) -> LaunchView:
    """The content of the launch section."""
    return LaunchView(
        f"grid {_grid(prediction)}, {prediction.threads} threads",
        tuple(describe_counters(prediction, peaks)),
        tuple(view_finding(finding, sources) for finding in find_launch_findings(prediction)),
        ()
        if prediction.cta_order is None
        else tuple(describe_order(prediction.cta_order, prediction.counters.unique_bytes_read is not None)),
        tuple(describe_limits(prediction)),
        prediction.sampled,
        tuple(draw_launch(prediction, peaks, residency)),
    )


def line_counters(prediction: Prediction) -> dict[str, Heat]:
    """Counters next to lines of machine code and source: stage or file → title → line → number."""
    heat: dict[str, dict[str, dict[int, float]]] = {}
    for line in (*prediction.by_line, *prediction.by_source):
        file = (line.source or "").rpartition(":")[0]
        for title, figure in _figures(line):
            if figure:
                file_counters = heat.setdefault(file if line.stage == "source" else line.stage, {})
                file_counters.setdefault(title, {})[line.line] = figure
    return {name: dict(margins) for name, margins in heat.items()}


def _figures(line: LinePrediction) -> Iterator[tuple[str, int | None]]:
    yield "executed", line.executed
    yield "sectors", line.sectors
    yield "excess sectors", line.excess_sectors
    yield "bank conflicts", line.bank_conflicts


def launch_page(details: Mapping[str, tuple[DetailPage, Prediction]]) -> str:
    """The HTML of some launches, each with the page of its kernel.

    Args:
        details: id → detail page and prediction.
    """
    names = dict.fromkeys(prediction.kernel for _, prediction in details.values())
    count = len(details)
    book = TablePage(
        f"{', '.join(names)}: predicted launches",
        f"{count} predicted launches",
        table=TableData(
            "launches", _COLUMNS, tuple(_row(name, prediction) for name, (_, prediction) in details.items())
        ),
    )
    return render_pages(book, [detail for detail, _ in details.values()], is_single=count == 1)


_COLUMNS = (
    TableColumn("kernel", "kernel", "", False, True),
    TableColumn("target", "target", "", False, True),
    TableColumn("grid", "grid", "CTAs", False, True),
    TableColumn("instructions", "instructions", "executed by warps", True),
    TableColumn("tensor", "tensor", "tensor-core instructions", True),
    TableColumn("sectors", "sectors", "32 B pieces that loads request", True),
    TableColumn("wavefronts", "wavefronts", "passes over shared memory", True),
    TableColumn("read", "read", "distinct bytes read from global memory", True),
    TableColumn("written", "written", "distinct bytes written to global memory", True),
    TableColumn("findings", "findings", "of the launch", False, True),
)


def _row(name: str, prediction: Prediction) -> TableLine:
    counters = prediction.counters
    figures = (
        counters.instructions,
        counters.tensor_instructions,
        counters.global_load_sectors,
        counters.shared_wavefronts,
        counters.unique_bytes_read,
        counters.unique_bytes_written,
    )
    cells = (UNKNOWN_CELL if figure is None else figure for figure in figures)
    codes = dict.fromkeys(finding.code for finding in find_launch_findings(prediction))
    return TableLine(name, (prediction.kernel, prediction.target, _grid(prediction), *cells, tuple(codes)))


def _grid(prediction: Prediction) -> str:
    return "×".join(map(str, prediction.grid))

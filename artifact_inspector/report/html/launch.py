"""The simulated launch of a kernel on its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from artifact_inspector.execution.prediction import Line, Prediction
from artifact_inspector.execution.timing.residency import Residency
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.report.html.book import Book, Leaf, bind
from artifact_inspector.report.html.code import Heat
from artifact_inspector.report.html.drawings import Drawing
from artifact_inspector.report.html.finding import Shown, show_finding
from artifact_inspector.report.html.launch_drawings import draw_launch
from artifact_inspector.report.html.sources import Sources
from artifact_inspector.report.html.table import NOT_KNOWN, Column, Table
from artifact_inspector.report.html.table import Line as TableLine
from artifact_inspector.report.prediction import describe_counters, describe_limits, describe_order


@dataclass(frozen=True, slots=True)
class LaunchView:
    """The content of the launch section."""

    title: str
    counters: tuple[tuple[str, str], ...]
    findings: tuple[Shown, ...]
    order: tuple[str, ...]
    """Sentences on the order of its CTAs."""
    limits: tuple[str, ...]
    """Out-of-bounds accesses and unknown counters."""
    is_sampled: bool
    drawings: tuple[Drawing, ...]


def view_launch(
    found: Prediction, sources: Sources, peaks: Peaks | None, resident: Residency | None = None
) -> LaunchView:
    """The content of the launch section."""
    return LaunchView(
        f"grid {_grid(found)}, {found.threads} threads",
        tuple(describe_counters(found, peaks)),
        tuple(show_finding(finding, sources) for finding in find_launch_findings(found)),
        ()
        if found.cta_order is None
        else tuple(describe_order(found.cta_order, found.counters.unique_bytes_read is not None)),
        tuple(describe_limits(found)),
        found.sampled,
        tuple(draw_launch(found, peaks, resident)),
    )


def heat_of(found: Prediction) -> dict[str, Heat]:
    """Counters next to lines of machine code and source: stage or file → title → line → number."""
    heat: dict[str, dict[str, dict[int, float]]] = {}
    for line in (*found.by_line, *found.by_source):
        file = (line.source or "").rpartition(":")[0]
        for title, figure in _figures(line):
            if figure:
                place = heat.setdefault(file if line.stage == "source" else line.stage, {})
                place.setdefault(title, {})[line.line] = figure
    return {name: dict(margins) for name, margins in heat.items()}


def _figures(line: Line) -> Iterator[tuple[str, int | None]]:
    yield "executed", line.executed
    yield "sectors", line.sectors
    yield "excess sectors", line.extra_sectors
    yield "bank conflicts", line.conflicts


def launch_page(leaves: Mapping[str, tuple[Leaf, Prediction]]) -> str:
    """The HTML of some launches, each with the page of its kernel.

    Args:
        leaves: id → detail page and prediction.
    """
    names = dict.fromkeys(found.kernel for _, found in leaves.values())
    count = len(leaves)
    book = Book(
        f"{', '.join(names)}: predicted launches",
        f"{count} predicted launches",
        table=Table("launches", _COLUMNS, tuple(_row(name, found) for name, (_, found) in leaves.items())),
    )
    return bind(book, [leaf for leaf, _ in leaves.values()], alone=count == 1)


_COLUMNS = (
    Column("kernel", "kernel", "", False, True),
    Column("target", "target", "", False, True),
    Column("grid", "grid", "CTAs", False, True),
    Column("instructions", "instructions", "executed by warps", True),
    Column("tensor", "tensor", "tensor-core instructions", True),
    Column("sectors", "sectors", "32 B pieces that loads request", True),
    Column("wavefronts", "wavefronts", "passes over shared memory", True),
    Column("read", "read", "distinct bytes read from global memory", True),
    Column("written", "written", "distinct bytes written to global memory", True),
    Column("findings", "findings", "of the launch", False, True),
)


def _row(name: str, found: Prediction) -> TableLine:
    counters = found.counters
    figures = (
        counters.instructions,
        counters.tensor_instructions,
        counters.global_load_sectors,
        counters.shared_wavefronts,
        counters.unique_bytes_read,
        counters.unique_bytes_written,
    )
    told = (NOT_KNOWN if figure is None else figure for figure in figures)
    codes = dict.fromkeys(finding.code for finding in find_launch_findings(found))
    return TableLine(name, (found.kernel, found.target, _grid(found), *told, tuple(codes)))


def _grid(found: Prediction) -> str:
    return "×".join(map(str, found.grid))

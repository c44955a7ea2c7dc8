"""The simulated launch of a kernel on its page; imported only with a launch, since it needs numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from artifact_inspector.execution.prediction import LinePrediction, Prediction, SharedAccess
from artifact_inspector.execution.roofline import find_roofline
from artifact_inspector.execution.timing.residency import Residency
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.hardware.peaks import Peaks
from artifact_inspector.pictures.bank_conflicts import bank_conflicts
from artifact_inspector.pictures.cta_grid import cta_grid
from artifact_inspector.pictures.residency import residency
from artifact_inspector.pictures.roofline import roofline
from artifact_inspector.report.html.code import Heat
from artifact_inspector.report.html.drawings import NARROW, WIDTH, PictureSection, make_section
from artifact_inspector.report.html.sources import Sources, view_finding
from artifact_inspector.report.html.table_page import (
    UNKNOWN_CELL,
    DetailPage,
    TableColumn,
    TableData,
    TablePage,
    render_pages,
)
from artifact_inspector.report.html.table_page import TableRow as TableLine
from artifact_inspector.report.prediction import (
    describe_counters,
    describe_limits,
    describe_order,
    describe_out_of_bounds,
    describe_time,
    sort_by_time,
    worst_stalls,
)


def view_launch(
    prediction: Prediction, sources: Sources, peaks: Peaks | None, residency: Residency | None = None
) -> dict[str, object]:
    """The content of the launch section: name → value in the template."""
    order, is_read_known = prediction.cta_order, prediction.counters.unique_bytes_read is not None
    return {
        "title": f"grid {_grid(prediction)}, {prediction.threads} threads",
        "counters": [
            *(("time", sentence) for sentence in describe_time(prediction.time)),
            *describe_counters(prediction, peaks),
        ],
        "findings": [view_finding(finding, sources) for finding in find_launch_findings(prediction)],
        "order": [] if order is None else [*describe_order(order, is_read_known)],
        "limits": [*describe_out_of_bounds(prediction), *describe_limits(prediction)],
        "is_sampled": prediction.sampled,
        "drawings": [*draw_launch(prediction, peaks, residency)],
    }


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
    """The HTML of some launches, each with the page of its kernel. `details`: id → detail page and prediction."""
    names = dict.fromkeys(prediction.kernel for _, prediction in details.values())
    count, launches = len(details), [prediction for _, prediction in details.values()]
    name_of = {id(prediction): name for name, (_, prediction) in details.items()}
    book = TablePage(
        f"{', '.join(names)}: predicted launches",
        f"{count} predicted launches",
        tuple(
            f"Longest: {one.kernel}: {next(describe_time(one.time))}" for one in sort_by_time(launches)[:1] if one.time
        ),
        table=TableData("launches", _COLUMNS, tuple(_row(name_of[id(one)], one) for one in sort_by_time(launches))),
    )
    return render_pages(book, [detail for detail, _ in details.values()], is_single=count == 1)


_COLUMNS = (
    TableColumn("kernel", "kernel", "", False, True),
    TableColumn("target", "target", "", False, True),
    TableColumn("grid", "grid", "CTAs", False, True),
    TableColumn("time", "µs", "predicted time", True, worse="more"),
    TableColumn("bound", "limited by", "what limits the time", False, True),
    TableColumn("line", "most waiting", "source line where warps wait most", False),
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
    time = prediction.time
    judged = (UNKNOWN_CELL, "") if time is None else (round(time.us, 1), time.bound)
    line = next((stalls[0].line for stalls in worst_stalls(prediction)), "")
    codes = dict.fromkeys(finding.code for finding in find_launch_findings(prediction))
    return TableLine(
        name, (prediction.kernel, prediction.target, _grid(prediction), *judged, line, *cells, tuple(codes))
    )


def _grid(prediction: Prediction) -> str:
    return "×".join(map(str, prediction.grid))


MAX_ACCESSES = 3
"""Most accesses to shared memory with a view, one per line and opcode."""


def draw_launch(
    prediction: Prediction, peaks: Peaks | None, residency_model: Residency | None = None
) -> Iterator[PictureSection]:
    """The pictures of a launch."""
    if prediction.cta_order is not None and prediction.cta_order.tiles:
        explanation = "The tile that each CTA writes, and the wave in which it runs."
        grid = partial(cta_grid, prediction, width=WIDTH, style=False)
        yield make_section("grid", "Grid of CTAs", explanation, {"all": grid})
    worst_accesses: dict[str, SharedAccess] = {}
    for access in prediction.shared_accesses:
        if access.line.bank_conflicts:
            worst_accesses.setdefault(f"{access.line.source or access.line.line} {access.line.opcode}", access)
    if worst_accesses:
        explanation = "Banks that the lanes of a warp access, and the wavefront of each; worst accesses first."
        renderers = {
            name: partial(bank_conflicts, prediction, access, width=NARROW + 320, style=False)
            for name, access in list(worst_accesses.items())[:MAX_ACCESSES]
        }
        yield make_section("banks", "Bank conflicts", explanation, renderers, is_wide=False)
    if residency_model is not None:
        explanation = "What the warps of an SM compute and wait for, according to a model; not measured."
        warps = partial(residency, residency_model, width=WIDTH, style=False)
        yield make_section("residency", "Resident warps", explanation, {"all": warps})
    position = find_roofline(prediction.counters, peaks)
    if position is not None:
        explanation = "The peak rate of the GPU at the arithmetic intensity of this launch; not measured."
        roof = partial(roofline, [(prediction.kernel, position)], width=NARROW + 120, style=False)
        yield make_section("roofline", "Roofline", explanation, {"all": roof}, is_wide=False)

"""`inspect-kernel predict`: what a launch will do; its machine code is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import LaunchOptions, Selection
from artifact_inspector.cli._output import notice, output_to, print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.cli._launches import LaunchPair
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.facts.modules import Disassemble


@command()
def predict(
    selection: Selection,
    launches: LaunchOptions,
    gpu: options.Gpu = None,
    ctas_per_wave: int | None = options.option(
        "--ctas-per-wave N", "Run N CTAs at a time. Default: occupancy * SMs.", None
    ),
    budget: options.Budget = None,
    svg: str | None = options.option(
        "--svg WHAT", f"Draw the launch as SVG instead: {', '.join(options.LAUNCH_PICTURES)}.", None
    ),
    line: str | None = options.option(
        "--line LINE", "With --svg banks, draw the access of this source line. Default: the worst.", None
    ),
    product: str | None = options.option(
        "--product MxK@KxN", "Count bytes and FLOPs of a matrix product instead: 1x4096@4096x7168.", None
    ),
    dtype: str = options.option(
        "--dtype TYPE", "With --product, the type of all three matrices, or three types.", "fp16"
    ),
    time: float | None = options.option(
        "--time SECONDS", "With --product, the measured time: print the share of the peaks.", None
    ),
    trace: Path | None = options.option(
        "--trace FILE", "Write the resident warps as a trace for ui.perfetto.dev instead; 1 µs is a cycle.", None
    ),
    output: options.Output = None,
    html: options.Html = None,
    sources: options.SourceDirectory = None,
    json: options.Json = False,
) -> None:
    """Predict what a launch executes, transfers and waits for, by simulation. No GPU needed."""
    with output_to(None if svg else output), ExitStack() as stack:
        if product is not None:
            from artifact_inspector.cli._product import print_product

            if selection.cache is not None:
                raise UsageError(
                    f"--product reads no cache, and {selection.cache} is given.", "Give either a cache or --product."
                )
            print_product(product, dtype.split(","), time, gpu, json=json)
            return
        _require_consistency(time, svg, line)
        from artifact_inspector.api.launches import predict_launches
        from artifact_inspector.cli._budget import budget_seconds
        from artifact_inspector.cli._launches import launch_disassembler, requested_pairs
        from artifact_inspector.cli._loading import open_cache_or_fail, read_filters
        from artifact_inspector.execution.interpreter.budget import limit_simulation
        from artifact_inspector.hardware.peaks import find_peaks
        from artifact_inspector.hardware.products import modelled_product
        from artifact_inspector.report.json.prediction import prediction_document
        from artifact_inspector.report.prediction import PredictionReport
        from artifact_inspector.report.progress import progress_bar

        opened = open_cache_or_fail(selection.cache)
        filters = read_filters(selection.target, selection.properties)
        gpu = modelled_product(gpu, selection.target)
        pairs = requested_pairs(launches, opened, selection.name, filters)
        disassemble = launch_disassembler(pairs, launches.nvdisasm)
        limit = stack.enter_context(limit_simulation(budget_seconds(budget)))
        if svg == "residency" or trace is not None:
            if html is not None:
                raise UsageError(
                    "--html does not combine with --svg residency or --trace: those simulate some CTAs only.",
                    "Give one of them.",
                )
            from artifact_inspector.cli._pictures import write_residency

            write_residency(pairs, disassemble, gpu, launches.steps, output, trace)
            return
        simulated: list[int] = []
        with progress_bar(len(pairs), "running") as advance:
            predictions = predict_launches(
                pairs,
                disassemble,
                gpu=gpu,
                steps=launches.steps,
                ctas_per_wave=ctas_per_wave,
                progress=lambda entry: advance(entry.display_name),
                simulated=simulated,
            )
        notes = []
        if len(simulated) < len(pairs):
            notes = [f"{len(simulated)} of {len(pairs)} launches were simulated: {limit.reason}."]
            pairs = [pairs[index] for index in simulated]
        peaks = None if gpu is None else find_peaks(gpu)
        if html is not None:
            _write_page(html, pairs, predictions, disassemble, gpu, launches.steps, sources)
        if svg is not None:
            from artifact_inspector.cli._pictures import draw_launches, write_svg

            if limit.is_spent():
                notice(f"The picture may be incomplete: {limit.reason}.")
            write_svg(output, draw_launches(predictions, svg, peaks, line))
        elif json:
            print_json(prediction_document(predictions, notes))
        else:
            print_report(PredictionReport(predictions, peaks, notes))
        if any(prediction.out_of_bounds for prediction in predictions):
            raise typer.Exit(DIFFERENT)


def _require_consistency(time: float | None, svg: str | None, line: str | None) -> None:
    if time is not None:
        raise UsageError("--time needs --product.", "Give the product too: --product MxK@KxN.")
    if svg is not None:
        options.require_picture(svg, options.LAUNCH_PICTURES)
    if line is not None and svg != "banks":
        raise UsageError("--line needs --svg banks.", "Give both, or neither.")


def _write_page(
    html: Path,
    pairs: Sequence[LaunchPair],
    predictions: Sequence[Prediction],
    disassemble: Disassemble | None,
    gpu: str | None,
    steps: int,
    directory: Path | None,
) -> None:
    from artifact_inspector.cli._pages import local_sources, write_page
    from artifact_inspector.cli._pictures import model_residency
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.report.html import MAX_DETAILS, Sources, make_detail, name_details, view_kernel
    from artifact_inspector.report.html.launch import launch_page

    if len(predictions) > MAX_DETAILS:
        raise UsageError(
            f"An HTML page shows at most {MAX_DETAILS} launches; {len(predictions)} match.",
            "Narrow by name or hash, --target or --where.",
        )
    pages = {}
    read_source = local_sources(directory)
    peaks = None if gpu is None else find_peaks(gpu)
    names = name_details([entry.hash for entry, _ in pairs])
    for name, pair, launch in zip(names, pairs, predictions, strict=True):
        kernel = inspect_artifact(pair[0], disassemble)
        resident = None
        with suppress(UsageError):  # not modelled, for example on AMD: omit it from the page
            resident = model_residency([pair], disassemble, gpu, steps)
        view = view_kernel(kernel, Sources(read_source), disassemble, launch, peaks, resident)
        pages[name] = (make_detail(view, name, ""), launch)
    write_page(html, launch_page(pages))

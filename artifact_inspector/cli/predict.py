"""`inspect-kernel predict`: what a launch will do; its machine code is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import DIFFERENT, exit_codes
from artifact_inspector.cli._launches import (
    MAX_STEPS,
    Arguments,
    Budget,
    Gpu,
    Grid,
    LaunchFile,
    Steps,
    budget_seconds,
    read_requests,
)
from artifact_inspector.cli._loading import make_disassembler, open_cache_or_fail
from artifact_inspector.cli._options import (
    CacheDirectory,
    Html,
    Json,
    KernelName,
    Nvdisasm,
    Output,
    ReadTargets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._output import output_to, print_json, print_report
from artifact_inspector.cli._pictures import LAUNCH_PICTURES, require_picture
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact


@app.command()
def predict(
    cache: CacheDirectory = None,
    name: KernelName = None,
    argument_texts: Arguments = None,
    grid: Grid = None,
    launch: LaunchFile = None,
    target: ReadTargets = None,
    properties: Where = None,
    gpu: Gpu = None,
    ctas_per_wave: Annotated[
        int | None, typer.Option("--ctas-per-wave", metavar="N", help="Run N CTAs at a time. Default: occupancy * SMs.")
    ] = None,
    steps: Steps = MAX_STEPS,
    budget: Budget = None,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="WHAT", help=f"Draw the launch as SVG instead: {', '.join(LAUNCH_PICTURES)}."),
    ] = None,
    line: Annotated[
        str | None,
        typer.Option(
            "--line", metavar="LINE", help="With --svg banks, draw the access of this source line. Default: the worst."
        ),
    ] = None,
    product: Annotated[
        str | None,
        typer.Option(
            "--product", metavar="MxK@KxN", help="Count bytes and FLOPs of a matrix product instead: 1x4096@4096x7168."
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option("--dtype", metavar="TYPE", help="With --product, the type of all three matrices, or three types."),
    ] = "fp16",
    time: Annotated[
        float | None,
        typer.Option(
            "--time", metavar="SECONDS", help="With --product, the measured time: print the share of the peaks."
        ),
    ] = None,
    output: Output = None,
    html: Html = None,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Predict what a launch executes, transfers and waits for, by simulation. No GPU needed."""
    with exit_codes(json=json), output_to(None if svg else output):
        from artifact_inspector.api.launches import pair_launches, predict_launches
        from artifact_inspector.cli._pictures import draw_residency, write_svg
        from artifact_inspector.execution.interpreter.budget import limit_simulation
        from artifact_inspector.facts.selection import parse_filters
        from artifact_inspector.report.progress import progress_bar

        if product is not None:
            from artifact_inspector.cli._product import print_product

            if cache is not None:
                raise UsageError(
                    f"--product reads no cache, and {cache} is given.", "Give either a cache or --product."
                )
            print_product(product, dtype.split(","), time, gpu, json=json)
            return
        if time is not None:
            raise UsageError("--time needs --product.", "Give the product too: --product MxK@KxN.")
        if svg is not None:
            require_picture(svg, LAUNCH_PICTURES)
        if line is not None and svg != "banks":
            raise UsageError("--line needs --svg banks.", "Give both, or neither.")
        opened = open_cache_or_fail(cache)
        kernel_selectors = parse_filters(read_selectors(target, properties))
        requests = read_requests(argument_texts or [], grid, launch, opened, name, kernel_selectors)
        pairs = pair_launches(opened, name, kernel_selectors, requests)
        disassemble = make_disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)
        if svg == "residency":
            if html is not None:
                raise UsageError(
                    "--html and --svg residency do not combine: --svg residency simulates some CTAs only.",
                    "Give one of them.",
                )
            write_svg(output, draw_residency(pairs, disassemble, gpu, steps))
            return
        simulated: list[int] = []
        with progress_bar(len(pairs), "running") as advance, limit_simulation(budget_seconds(budget)) as limit:
            predictions = predict_launches(
                pairs,
                disassemble,
                gpu=gpu,
                steps=steps,
                ctas_per_wave=ctas_per_wave,
                progress=lambda entry: advance(entry.display_name),
                simulated=simulated,
            )
        notes = []
        if len(simulated) < len(pairs):
            notes = [f"{len(simulated)} of {len(pairs)} launches were simulated: {limit.reason}."]
            pairs = [pairs[index] for index in simulated]
        if html is not None:
            _write_page(html, pairs, predictions, disassemble, gpu, steps)
        if svg is None:
            _print_predictions(predictions, gpu, notes, json=json)
        else:
            _draw(predictions, gpu, svg, line, output)
        if any(prediction.out_of_bounds for prediction in predictions):
            raise typer.Exit(DIFFERENT)


def _write_page(
    html: Path,
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    predictions: Sequence[Prediction],
    disassemble: Disassemble | None,
    gpu: str | None,
    steps: int,
) -> None:
    from artifact_inspector.cli._pages import read_local_source, write_page
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
    peaks = None if gpu is None else find_peaks(gpu)
    names = name_details([entry.hash for entry, _ in pairs])
    for name, pair, launch in zip(names, pairs, predictions, strict=True):
        kernel = inspect_artifact(pair[0], disassemble)
        resident = None
        with suppress(UsageError):  # not modelled, for example on AMD: omit it from the page
            resident = model_residency([pair], disassemble, gpu, steps)
        view = view_kernel(kernel, Sources(read_local_source), disassemble, launch, peaks, resident)
        pages[name] = (make_detail(view, name, ""), launch)
    write_page(html, launch_page(pages))


def _draw(
    predictions: Sequence[Prediction], gpu: str | None, picture: str, line: str | None, output: Path | None
) -> None:
    from artifact_inspector.cli._pictures import draw_launches, write_svg
    from artifact_inspector.hardware.peaks import find_peaks

    write_svg(output, draw_launches(predictions, picture, None if gpu is None else find_peaks(gpu), line))


def _print_predictions(predictions: Sequence[Prediction], gpu: str | None, notes: Sequence[str], *, json: bool) -> None:
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.report.json.prediction import prediction_document
    from artifact_inspector.report.prediction import PredictionReport

    if json:
        print_json(prediction_document(predictions, notes))
    else:
        print_report(PredictionReport(predictions, None if gpu is None else find_peaks(gpu), notes))

"""`inspect-kernel predict`: what a launch will do; its machine code is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._launches import (
    MOST_STEPS,
    Arguments,
    Gpu,
    Grid,
    LaunchFile,
    Steps,
    read_requests,
)
from artifact_inspector.cli._options import (
    CacheDirectory,
    Html,
    Json,
    KernelName,
    Nvdisasm,
    Output,
    Targets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._pictures import OF_LAUNCH, require_picture
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.cli._telling import output_to, print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.requests import Request
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact


@app.command()
def predict(
    cache: CacheDirectory = None,
    name: KernelName = None,
    arg: Arguments = None,
    grid: Grid = None,
    launch: LaunchFile = None,
    target: Targets = None,
    where: Where = None,
    gpu: Gpu = None,
    ctas_per_wave: Annotated[
        int | None,
        typer.Option("--ctas-per-wave", metavar="N", help="Run N CTAs at a time. Default: occupancy * SMs."),
    ] = None,
    steps: Steps = MOST_STEPS,
    svg: Annotated[
        str | None,
        typer.Option(
            "--svg", metavar="WHAT", help=f"Draw the launch as SVG instead: {', '.join(OF_LAUNCH)}."
        ),
    ] = None,
    line: Annotated[
        str | None,
        typer.Option(
            "--line",
            metavar="LINE",
            help="With --svg banks, draw the access of this source line. Default: the worst.",
        ),
    ] = None,
    product: Annotated[
        str | None,
        typer.Option(
            "--product",
            metavar="MxK@KxN",
            help="Count bytes and FLOPs of a matrix product instead: 1x4096@4096x7168.",
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option(
            "--dtype", metavar="TYPE", help="With --product, the type of all three matrices, or three types."
        ),
    ] = "fp16",
    time: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="SECONDS",
            help="With --product, the measured time: print the share of the peaks.",
        ),
    ] = None,
    output: Output = None,
    html: Html = None,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Predict what a launch executes, transfers and waits for, by simulation. No GPU needed."""
    with exit_codes(json=json), output_to(None if svg else output):
        from artifact_inspector.api.predicting import pair_launches, predict_launches
        from artifact_inspector.cli._pictures import draw_residency, write_svg
        from artifact_inspector.facts.selection import parse_which
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
            require_picture(svg, OF_LAUNCH)
        if line is not None and svg != "banks":
            raise UsageError("--line needs --svg banks.", "Give both, or neither.")
        opened = open_or_advise(cache)
        wanted = parse_which(read_selectors(target, where))
        requests = read_requests(arg or [], grid, launch, opened, name, wanted)
        pairs = pair_launches(opened, name, wanted, requests)
        disassemble = disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)
        if svg == "residency":
            if html is not None:
                raise UsageError(
                    "--html and --svg residency do not combine: --svg residency simulates some CTAs only.",
                    "Give one of them.",
                )
            write_svg(output, draw_residency(pairs, disassemble, gpu, steps))
            return
        with progress_bar(len(pairs), "running") as advance:
            found = predict_launches(
                pairs,
                disassemble,
                gpu=gpu,
                steps=steps,
                ctas_per_wave=ctas_per_wave,
                progress=lambda entry: advance(entry.display_name),
            )
        if html is not None:
            _write_page(html, pairs, found, disassemble, gpu, steps)
        if svg is None:
            _show(found, gpu, json=json)
        else:
            _draw(found, gpu, svg, line, output)
        if any(prediction.outside for prediction in found):
            raise typer.Exit(FOUND)


def _write_page(
    html: Path,
    pairs: Sequence[tuple[Artifact, Request]],
    found: Sequence[Prediction],
    disassemble: Disassemble | None,
    gpu: str | None,
    steps: int,
) -> None:
    from artifact_inspector.cli._pages import read_here, write_page
    from artifact_inspector.cli._pictures import model_residency
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.report.html import (
        MOST_LEAVES,
        Sources,
        leaf_of,
        name_leaves,
        view_kernel,
    )
    from artifact_inspector.report.html.launch import launch_page

    if len(found) > MOST_LEAVES:
        raise UsageError(
            f"An HTML page shows at most {MOST_LEAVES} launches; {len(found)} match.",
            "Narrow by name or hash, --target or --where.",
        )
    leaves = {}
    peaks = None if gpu is None else find_peaks(gpu)
    names = name_leaves([entry.hash for entry, _ in pairs])
    for name, pair, launch in zip(names, pairs, found, strict=True):
        kernel = inspect_artifact(pair[0], disassemble)
        resident = None
        with suppress(UsageError):  # not modelled, for example on AMD: omit it from the page
            resident = model_residency([pair], disassemble, gpu, steps)
        view = view_kernel(kernel, Sources(read_here), disassemble, launch, peaks, resident)
        leaves[name] = (leaf_of(view, name, ""), launch)
    write_page(html, launch_page(leaves))


def _draw(
    found: Sequence[Prediction], gpu: str | None, what: str, line: str | None, output: Path | None
) -> None:
    from artifact_inspector.cli._pictures import draw_launches, write_svg
    from artifact_inspector.hardware.peaks import find_peaks

    write_svg(output, draw_launches(found, what, None if gpu is None else find_peaks(gpu), line))


def _show(found: Sequence[Prediction], gpu: str | None, *, json: bool) -> None:
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.report.json.prediction import prediction_document
    from artifact_inspector.report.prediction import PredictionReport

    if json:
        print_json(prediction_document(found))
    else:
        print_report(PredictionReport(found, None if gpu is None else find_peaks(gpu)))

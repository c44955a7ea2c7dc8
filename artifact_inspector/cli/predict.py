"""`inspect-kernel predict`: what a launch will do, by running its machine code on paper."""

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
from artifact_inspector.cli._options import CacheDirectory, Html, Json, KernelName, Nvdisasm, SvgOut, Targets
from artifact_inspector.cli._pictures import OF_LAUNCH, require_picture
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.cli._telling import print_json, print_report
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
    gpu: Gpu = None,
    ctas_per_wave: Annotated[
        int | None,
        typer.Option("--ctas-per-wave", metavar="N", help="CTAs side by side; else occupancy × SMs."),
    ] = None,
    steps: Steps = MOST_STEPS,
    svg: Annotated[
        str | None,
        typer.Option("--svg", metavar="WHAT", help=f"Draw it as SVG instead: {', '.join(OF_LAUNCH)}."),
    ] = None,
    line: Annotated[
        str | None,
        typer.Option("--line", metavar="LINE", help="Whose access --svg banks shows; else the worst."),
    ] = None,
    output: SvgOut = None,
    html: Html = None,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Say what a launch will execute, touch and wait for, by running its machine code on paper."""
    with exit_codes(json=json):
        from artifact_inspector.api.predicting import pair_launches, predict_launches
        from artifact_inspector.cli._pictures import draw_residency, write_svg
        from artifact_inspector.facts.selection import parse_which
        from artifact_inspector.report.progress import progress_bar

        if svg is not None:
            require_picture(svg, OF_LAUNCH)
        if line is not None and svg != "banks":
            raise UsageError("--line chooses what --svg banks shows.", "Give both, or neither.")
        opened = open_or_advise(cache)
        wanted = parse_which(target or [])
        requests = read_requests(arg or [], grid, launch, opened, name, wanted)
        pairs = pair_launches(opened, name, wanted, requests)
        disassemble = disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)
        if svg == "residency":
            if html is not None:
                raise UsageError(
                    "A page is of a launch that runs whole, this picture of some CTAs: ask for one."
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
        raise UsageError(f"A page shows {MOST_LEAVES} launches at most.", "Choose fewer of them.")
    leaves = {}
    peaks = None if gpu is None else find_peaks(gpu)
    names = name_leaves([entry.hash for entry, _ in pairs])
    for name, pair, launch in zip(names, pairs, found, strict=True):
        kernel = inspect_artifact(pair[0], disassemble)
        resident = None
        with suppress(UsageError):  # of AMD, say: the page does without
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

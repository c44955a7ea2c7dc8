"""`inspect-kernel predict`: what a launch will do, by running its machine code on paper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._options import CacheDirectory, Html, Json, KernelName, Nvdisasm, Targets
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.requests import Request
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact


MOST_STEPS = 50_000_000


@app.command()
def predict(
    cache: CacheDirectory = None,
    name: KernelName = None,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=VALUE", help="An argument: a_ptr=fp16[2048,2048], M=2048."),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option("--grid", metavar="X,Y,Z", help="CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'."),
    ] = None,
    launch: Annotated[
        Path | None, typer.Option("--launch", metavar="FILE", help="JSON with the grid and the arguments.")
    ] = None,
    target: Targets = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", metavar="GPU", help="The product whose L2 and SMs count: H200, 4090 …"),
    ] = None,
    ctas_per_wave: Annotated[
        int | None,
        typer.Option("--ctas-per-wave", metavar="N", help="CTAs side by side; else occupancy × SMs."),
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", metavar="N", help="Steps after which a kernel counts as endless.")
    ] = MOST_STEPS,
    html: Html = None,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Say what a launch will execute, touch and wait for, by running its machine code on paper."""
    with exit_codes(json=json):
        from artifact_inspector.api.predicting import pair_launches, predict_launches
        from artifact_inspector.facts.selection import parse_targets
        from artifact_inspector.report.progress import progress_bar

        requests = _requests(arg or [], grid, launch)
        opened = open_or_advise(cache)
        pairs = pair_launches(opened, name, parse_targets(target or []), requests)
        disassemble = disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)
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
            _write_page(html, [entry for entry, _ in pairs], found, disassemble, gpu)
        _show(found, gpu, json=json)
        if any(prediction.outside for prediction in found):
            raise typer.Exit(FOUND)


def _requests(arg: list[str], grid: str | None, launch: Path | None) -> tuple[Request, ...]:
    from artifact_inspector.execution.requests import Request, parse_argument, parse_document, parse_grid
    from artifact_inspector.files.reading import read_named

    given: dict[str, Any] = dict(parse_argument(text) for text in arg)
    extents = None if grid is None else parse_grid(grid)
    if launch is None:
        if extents is None:
            raise UsageError(
                "A launch needs a grid.",
                "Give --grid and --arg NAME=VALUE for each argument, or --launch FILE.",
            )
        return (Request(extents, given),)
    try:
        text = read_named(launch)
    except OSError as error:
        raise UsageError(f"{launch} cannot be read: {error.strerror or error}.") from None
    return tuple(
        Request(extents or found.grid, {**found.arguments, **given}, found.hash, found.notes)
        for found in parse_document(text, launch.name)
    )


def _write_page(
    html: Path,
    entries: Sequence[Artifact],
    found: Sequence[Prediction],
    disassemble: Disassemble | None,
    gpu: str | None,
) -> None:
    from artifact_inspector.cli._pages import read_here, write_page
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.report.html import (
        MOST_LEAVES,
        Sources,
        launch_page,
        leaf_of,
        name_leaves,
        view_kernel,
    )

    if len(found) > MOST_LEAVES:
        raise UsageError(f"A page shows {MOST_LEAVES} launches at most.", "Choose fewer of them.")
    leaves = {}
    peaks = None if gpu is None else find_peaks(gpu)
    names = name_leaves([entry.hash for entry in entries])
    for name, entry, launch in zip(names, entries, found, strict=True):
        kernel = inspect_artifact(entry, disassemble)
        view = view_kernel(kernel, Sources(read_here), disassemble, launch, peaks)
        leaves[name] = (leaf_of(view, name, ""), launch)
    write_page(html, launch_page(leaves))


def _show(found: Sequence[Prediction], gpu: str | None, *, json: bool) -> None:
    from artifact_inspector.hardware.peaks import find_peaks
    from artifact_inspector.report.console import show, write
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.prediction import prediction_document
    from artifact_inspector.report.prediction import PredictionReport

    if json:
        write(as_text(prediction_document(found), sys.stdout.encoding), sys.stdout)
    else:
        show(PredictionReport(found, None if gpu is None else find_peaks(gpu)), sys.stdout)

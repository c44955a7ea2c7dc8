"""`inspect-kernel predict`: what a launch will do, by running its machine code on paper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, KernelName, Nvdisasm, Targets
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.requests import Request
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact, Cache

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
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Say what a launch will execute, touch and wait for, by running its machine code on paper."""
    with exit_codes(json=json):
        requests = _requests(arg or [], grid, launch)
        opened = open_or_advise(cache)
        pairs = _paired(opened, name, target or [], requests)
        found = _predict(pairs, nvdisasm, gpu, steps, ctas_per_wave)
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


def _paired(
    cache: Cache, name: str | None, targets: list[str], requests: Sequence[Request]
) -> list[tuple[Artifact, Request]]:
    """Each launch with the compiled kernel that it is of.

    Raises:
        UsageError: there is none, or several fit and nothing says which.
    """
    from artifact_inspector.facts.selection import choose, parse_targets

    chosen = choose(cache, name, parse_targets(targets))
    runnable = [entry for entry in chosen if {"cubin", "sass", "ptx"} & set(entry.files)]
    if not runnable:
        raise CacheError(
            "No kernel here has machine code of an NVIDIA GPU.", "It takes a cubin, SASS or PTX."
        )
    pairs = []
    for request in requests:
        own = [
            entry
            for entry in runnable
            if request.hash is None or request.hash in entry.hash or request.hash in entry.directory
        ]
        if not own and len(runnable) == 1:
            own = runnable
        if len(own) != 1:
            raise UsageError(
                f"{len(own)} kernels here fit a launch{f' of {request.hash}' if request.hash else ''}.",
                "Name one by its name or a part of its hash, or give each launch its `hash`: "
                + ", ".join(f"{entry.display_name} {entry.hash[:12]}" for entry in (own or runnable)[:8])
                + ".",
            )
        pairs.append((own[0], request))
    return pairs


def _predict(
    pairs: Sequence[tuple[Artifact, Request]],
    nvdisasm: Path | None,
    gpu: str | None,
    steps: int,
    ctas_per_wave: int | None,
) -> list[Prediction]:
    from artifact_inspector.execution.loading import load_kernel
    from artifact_inspector.execution.prediction import predict as add_up
    from artifact_inspector.execution.requests import resolve
    from artifact_inspector.execution.running import run_launch
    from artifact_inspector.report.progress import progress_bar

    disassemble = disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)
    found = []
    with progress_bar(len(pairs), "running") as advance:
        for entry, request in pairs:
            advance(entry.display_name)
            loaded = load_kernel(entry, disassemble)
            names = [parameter.argument for parameter in loaded.parameters]
            launch = resolve(request, names, _constants(entry))
            wave = _wave(entry, disassemble, gpu, ctas_per_wave)
            run = run_launch(loaded, launch, limit=steps, footprints=wave is not None)
            found.append(add_up(run, _cache_bytes(entry, gpu), wave))
    return found


def _constants(entry: Artifact) -> dict[str, Any]:
    """What the kernel was compiled with, where the directory that it lies in has a record of it."""
    from artifact_inspector.compiling.ask.manifest import read_manifest

    path = next(iter(entry.files.values()))
    if not isinstance(path, Path):
        return {}
    for row in read_manifest(path.parent.parent):
        if row.get("directory") == path.parent.name and isinstance(row.get("constants"), dict):
            return dict(row["constants"])
    return {}


def _wave(
    entry: Artifact, disassemble: Disassemble | None, gpu: str | None, ctas_per_wave: int | None
) -> tuple[int, str] | None:
    """CTAs that run side by side, and whence that is known."""
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.hardware.targets import parse_target

    if ctas_per_wave is not None:
        if ctas_per_wave < 1:
            raise UsageError("--ctas-per-wave must be 1 or more.")
        return ctas_per_wave, "as given"
    target = entry.target if gpu is None else parse_target(gpu)
    product = None if target is None else target.gpu.product
    occupancy = inspect_artifact(entry, disassemble).occupancy
    if product is None or occupancy is None or not occupancy.blocks:
        return None
    blocks, count = occupancy.blocks, product.multiprocessors
    return blocks * count, f"{blocks} on each of {count} SMs of {product.name}"


def _cache_bytes(entry: Artifact, gpu: str | None) -> int | None:
    """Bytes of the second-level cache of the product named, else of the one that stands for the target."""
    from artifact_inspector.hardware.targets import parse_target

    target = entry.target if gpu is None else parse_target(gpu)
    product = None if target is None else target.gpu.product
    return None if product is None else product.l2_mib << 20


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

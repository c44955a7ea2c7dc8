"""`inspect-kernel advise`: what takes the time of a launch, by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._launches import (
    MAX_STEPS,
    Arguments,
    Gpu,
    Grid,
    LaunchFile,
    Steps,
    parse_duration,
    read_requests,
)
from artifact_inspector.cli._loading import make_disassembler, open_cache_or_fail
from artifact_inspector.cli._options import (
    CacheDirectory,
    Json,
    KernelName,
    Nvdisasm,
    Output,
    ReadTargets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._output import output_to, print_json, print_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artifact_inspector.diagnosis.cause import Diagnosis
    from artifact_inspector.diagnosis.remedy import RemedySearch
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.facts.selection import KernelFilter
    from artifact_inspector.files.cache import Artifact, Cache


@app.command()
def advise(
    cache: CacheDirectory = None,
    name: KernelName = None,
    argument_texts: Arguments = None,
    grid: Grid = None,
    launch: LaunchFile = None,
    target: ReadTargets = None,
    properties: Where = None,
    gpu: Gpu = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="FILE.py:KERNEL",
            help="Import this file to try other configurations. A record never imports code.",
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option("--budget", metavar="TIME", help="Try configurations for this long: 60s, 2m; 0 tries none.")
    ] = "60s",
    brief: Annotated[bool, typer.Option("--brief", help="Print the two most important causes only.")] = False,
    steps: Steps = MAX_STEPS,
    output: Output = None,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Name what takes the time of a launch, by source line. No GPU needed."""
    with exit_codes(json=json), output_to(output):
        from artifact_inspector.api.advice import diagnose_launches
        from artifact_inspector.facts.selection import parse_filters
        from artifact_inspector.report.advise import AdviceReport
        from artifact_inspector.report.json.advise import advice_document
        from artifact_inspector.report.progress import progress_bar

        opened = open_cache_or_fail(cache)
        selectors = parse_filters(read_selectors(target, properties))
        pairs = _pair_launches(opened, name, selectors, (argument_texts or [], grid, launch))
        disassemble = make_disassembler([entry for entry, _ in pairs], nvdisasm, sass=True)
        with progress_bar(len(pairs), "simulating") as advance:
            diagnoses = diagnose_launches(
                pairs, disassemble, gpu=gpu, steps=steps, progress=lambda entry: advance(entry.display_name)
            )
        searches = _search(pairs, diagnoses, gpu, steps, nvdisasm, kernel, parse_duration(budget))
        if json:
            print_json(advice_document(diagnoses, searches))
        else:
            print_report(AdviceReport(diagnoses, searches, is_brief=brief))


def _search(
    pairs: Sequence[tuple[Artifact, LaunchRequest]],
    diagnoses: Sequence[Diagnosis],
    gpu: str | None,
    steps: int,
    nvdisasm: Path | None,
    kernel: str | None,
    seconds: float,
) -> list[RemedySearch | None]:
    """The remedies of each launch, which share the budget."""
    from artifact_inspector.api.remedy_search import search_remedies
    from artifact_inspector.files.scratch import scratch_directory
    from artifact_inspector.report.progress import progress_bar

    if seconds <= 0:
        return [None] * len(pairs)
    with scratch_directory() as scratch, progress_bar(len(pairs), "trying configurations") as advance:
        return [
            search_remedies(
                pair,
                diagnosis,
                lambda entries: make_disassembler(entries, nvdisasm, sass=True),
                Path(scratch),
                gpu=gpu,
                steps=steps,
                kernel=kernel,
                budget=seconds / len(pairs),
                progress=advance,
            )
            for pair, diagnosis in zip(pairs, diagnoses, strict=True)
        ]


def _pair_launches(
    opened: Cache,
    name: str | None,
    selectors: Sequence[KernelFilter],
    launch_options: tuple[list[str], str | None, Path | None],
) -> list[tuple[Artifact, LaunchRequest]]:
    """Each launch with its kernel: given or recorded launches, else assumed ones."""
    from artifact_inspector.api.advice import assume_launches
    from artifact_inspector.api.launches import find_launches, pair_launches

    argument_texts, grid, launch = launch_options
    if not argument_texts and grid is None and launch is None and not find_launches(opened, name, selectors, None, {}):
        return assume_launches(opened, name, selectors)
    requests = read_requests(argument_texts, grid, launch, opened, name, selectors)
    return pair_launches(opened, name, selectors, requests)

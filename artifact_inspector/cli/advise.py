"""`inspect-kernel advise`: what takes the time of a launch, by simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import LaunchOptions, Selection
from artifact_inspector.cli._output import output_to, print_json, print_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from artifact_inspector.cli._launches import LaunchPair
    from artifact_inspector.diagnosis.cause import Diagnosis
    from artifact_inspector.diagnosis.remedy import RemedySearch
    from artifact_inspector.facts.selection import KernelFilter
    from artifact_inspector.files.cache import Cache


@command()
def advise(
    selection: Selection,
    launches: LaunchOptions,
    gpu: options.Gpu = None,
    kernel: str | None = options.option(
        "--kernel FILE.py:KERNEL", "Import this file to try other configurations. A record never imports code.", None
    ),
    budget: str = options.option("--budget TIME", "Try configurations for this long: 60s, 2m; 0 tries none.", "60s"),
    brief: bool = options.option("--brief", "Print the two most important causes only.", False),
    output: options.Output = None,
    json: options.Json = False,
) -> None:
    """Name what takes the time of a launch, by source line. No GPU needed."""
    with output_to(output):
        from artifact_inspector.api.advice import diagnose_launches
        from artifact_inspector.cli._launches import launch_disassembler, parse_duration
        from artifact_inspector.cli._loading import open_cache_or_fail, read_filters
        from artifact_inspector.report.advise import AdviceReport
        from artifact_inspector.report.json.advise import advice_document
        from artifact_inspector.report.progress import progress_bar

        opened = open_cache_or_fail(selection.cache)
        selectors = read_filters(selection.target, selection.properties)
        steps, nvdisasm = launches.steps, launches.nvdisasm
        pairs = _pair_launches(opened, selection.name, selectors, launches)
        disassemble = launch_disassembler(pairs, nvdisasm)
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
    pairs: Sequence[LaunchPair],
    diagnoses: Sequence[Diagnosis],
    gpu: str | None,
    steps: int,
    nvdisasm: Path | None,
    kernel: str | None,
    seconds: float,
) -> list[RemedySearch | None]:
    """The remedies of each launch, which share the budget."""
    from artifact_inspector.api.remedy_search import search_remedies
    from artifact_inspector.cli._loading import make_disassembler
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
    opened: Cache, name: str | None, selectors: Sequence[KernelFilter], launches: LaunchOptions
) -> list[LaunchPair]:
    """Each launch with its kernel: given or recorded launches, else assumed ones."""
    from artifact_inspector.api.advice import assume_launches
    from artifact_inspector.api.launches import find_launches
    from artifact_inspector.cli._launches import requested_pairs

    if launches.is_recorded and not find_launches(opened, name, selectors, None, {}):
        return assume_launches(opened, name, selectors)
    return requested_pairs(launches, opened, name, selectors)

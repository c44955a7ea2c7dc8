"""`inspect-kernel rank`: which launches will be fastest, by running some of their CTAs on paper."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._launches import (
    MOST_STEPS,
    Arguments,
    Gpu,
    Grid,
    LaunchFile,
    Steps,
    read_requests,
)
from artifact_inspector.cli._options import CacheDirectory, Json, KernelName, Nvdisasm, Targets
from artifact_inspector.cli._reading import disassembler, open_or_advise

if TYPE_CHECKING:
    from artifact_inspector.execution.ranking import Contestant, Ranked


@app.command()
def rank(
    cache: CacheDirectory = None,
    name: KernelName = None,
    arg: Arguments = None,
    grid: Grid = None,
    launch: LaunchFile = None,
    target: Targets = None,
    gpu: Gpu = None,
    steps: Steps = MOST_STEPS,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Put launches in order, the fastest first, by what they keep busy and wait for: no GPU is needed."""
    with exit_codes(json=json):
        from artifact_inspector.api.predicting import constants_of, pair_launches
        from artifact_inspector.execution.ranking import Contestant
        from artifact_inspector.facts.selection import parse_which
        from artifact_inspector.report.console import show, write
        from artifact_inspector.report.json import as_text
        from artifact_inspector.report.json.ranking import ranking_document
        from artifact_inspector.report.ranking import RankingReport

        opened = open_or_advise(cache)
        requests = read_requests(arg or [], grid, launch, opened, name)
        pairs = pair_launches(opened, name, parse_which(target or []), requests, every=True)
        contestants = [Contestant(entry, request, constants_of(entry)) for entry, request in pairs]
        found = _rank(contestants, gpu, steps, nvdisasm)
        if json:
            write(as_text(ranking_document(found), sys.stdout.encoding), sys.stdout)
        else:
            show(RankingReport(found), sys.stdout)


def _rank(contestants: list[Contestant], gpu: str | None, steps: int, nvdisasm: Path | None) -> list[Ranked]:
    from artifact_inspector.compiling.ask.compile import processors
    from artifact_inspector.execution.ranking import rank_launches
    from artifact_inspector.report.progress import progress_bar

    disassemble = disassembler([one.artifact for one in contestants], nvdisasm, sass=True)
    with progress_bar(len(contestants), "ranking") as advance:
        return rank_launches(
            contestants,
            disassemble,
            gpu=gpu,
            limit=steps,
            processors=processors(),
            progress=lambda: advance(contestants[0].artifact.display_name),
        )

"""`inspect-kernel rank`: sort launches by predicted time; some CTAs of each are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from artifact_inspector.cli._options import (
    CacheDirectory,
    Json,
    Keep,
    KernelName,
    Nvdisasm,
    Targets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._reading import disassembler, open_or_advise
from artifact_inspector.cli._telling import print_json, print_report
from artifact_inspector.files.scratch import scratch_directory

if TYPE_CHECKING:
    from artifact_inspector.api.contests import Contest
    from artifact_inspector.execution.requests import Request
    from artifact_inspector.execution.timing.contestants import Contestant
    from artifact_inspector.execution.timing.ranking import Ranked
    from artifact_inspector.files.cache import Artifact


@app.command(context_settings={"allow_extra_args": True})
def rank(
    context: typer.Context,
    cache: CacheDirectory = None,
    name: KernelName = None,
    arg: Arguments = None,
    grid: Grid = None,
    launch: LaunchFile = None,
    target: Targets = None,
    where: Where = None,
    gpu: Gpu = None,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="NAME=VALUES ...",
            help="Also compile and rank these constants and options: BLOCK_K=32,64 num_stages=2..5.",
        ),
    ] = None,
    configs: Annotated[
        str | None,
        typer.Option(
            "--configs",
            metavar="all|N",
            help="Also compile and rank the kernel's autotuning configurations, all or N.",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            metavar="FILE.py:KERNEL",
            help="Import this file to compile --vary and --configs. A record never imports code.",
        ),
    ] = None,
    out: Keep = None,
    steps: Steps = MOST_STEPS,
    json: Json = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Rank launches or configurations by predicted time, fastest first. No GPU needed."""
    with exit_codes(json=json):
        from artifact_inspector.api.contests import enter_pairs, enter_record
        from artifact_inspector.api.predicting import has_tuned, pair_launches
        from artifact_inspector.facts.selection import parse_which
        from artifact_inspector.report.json.ranking import RankingDocument
        from artifact_inspector.report.ranking import RankingReport

        words, name = _words(tries, [*context.args, *([name] if name else [])])
        opened = open_or_advise(cache)
        wanted, own = parse_which(read_selectors(target, where)), grid is None and launch is None and not arg
        # `capture --configs all` records the launch of each configuration
        recorded = configs == "all" and own and has_tuned(opened)
        every = not words and (configs is None or recorded)
        requests = read_requests(arg or [], grid, launch, opened, name, wanted, every=every)
        pairs = pair_launches(opened, name, wanted, requests, every=every)
        with scratch_directory() as made:
            if not every:
                contest = _compile(pairs, words, configs, out or Path(made), own=own, kernel=kernel)
            else:
                contest = enter_record(pairs) if own else enter_pairs(pairs)
            found = _rank(contest.contestants, gpu, steps, nvdisasm)
        if json:
            print_json(
                RankingDocument(
                    rank=tuple(found), refused=contest.refused, problems=contest.problems, notes=contest.notes
                )
            )
        else:
            print_report(RankingReport(found, contest.refused, contest.problems, contest.notes))


def _words(tries: list[str] | None, others: list[str]) -> tuple[list[str], str | None]:
    """The values to vary and the kernel's name; words with `=` after `--vary` belong to it.

    Raises:
        UsageError: there are further words.
    """
    from artifact_inspector.errors import UsageError

    words = list(tries or ())
    names = [word for word in others if "=" not in word]
    if len(names) > 1 or (not words and len(others) > len(names)):
        raise UsageError(f"Unexpected argument {others[0]!r}.", "Expected CACHE, NAME and options.")
    return words + [word for word in others if "=" in word], names[0] if names else None


def _compile(
    pairs: list[tuple[Artifact, Request]],
    words: list[str],
    configs: str | None,
    out: Path,
    *,
    own: bool,
    kernel: str | None,
) -> Contest:
    from artifact_inspector.api.contests import enter_tries
    from artifact_inspector.execution.timing.trying import parse_tries
    from artifact_inspector.report.progress import progress_bar

    total = [0]
    with progress_bar(lambda: total[0], "compiling") as advance:
        return enter_tries(
            pairs,
            parse_tries(words),
            configs,
            out,
            own=own,
            kernel=kernel,
            planned=lambda count: total.__setitem__(0, count),
            progress=lambda result: advance(result.kernel),
        )


def _rank(
    contestants: Sequence[Contestant], gpu: str | None, steps: int, nvdisasm: Path | None
) -> list[Ranked]:
    from artifact_inspector.compiling.ask.compile import processors
    from artifact_inspector.execution.timing.ranking import put_in_order, rank_launches
    from artifact_inspector.report.progress import progress_bar

    disassemble = disassembler([one.artifact for one in contestants], nvdisasm, sass=True)
    best: list[Ranked] = []

    def tell(row: Ranked) -> None:
        best[:] = put_in_order([*best, row])[:1]
        advance(f"best so far: {best[0].label or best[0].hash[:12]}")

    with progress_bar(len(contestants), "ranking") as advance:
        advance(contestants[0].artifact.display_name)
        return rank_launches(
            contestants,
            disassemble,
            gpu=gpu,
            limit=steps,
            processors=processors(),
            progress=tell,
        )

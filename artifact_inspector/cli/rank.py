"""`inspect-kernel rank`: sort launches by predicted time; some CTAs of each are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import LaunchOptions, Selection
from artifact_inspector.cli._output import notice, print_json, print_next, print_report
from artifact_inspector.errors import UsageError
from artifact_inspector.files.scratch import scratch_directory

if TYPE_CHECKING:
    from artifact_inspector.execution.timing.candidates import RankingCandidate
    from artifact_inspector.execution.timing.ranking import RankedLaunch
    from artifact_inspector.files.cache import Artifact

MAX_MISSING = 4
"""Most kernels without a launch that are named."""


@command(context_settings={"allow_extra_args": True})
def rank(
    context: typer.Context,
    selection: Selection,
    launches: LaunchOptions,
    gpu: options.Gpu = None,
    varied_texts: list[str] | None = options.option(
        "--vary NAME=VALUES ...",
        "Also compile and rank these constants and options: BLOCK_K=32,64 num_stages=2..5.",
        None,
    ),
    configs: str | None = options.option(
        "--configs all|N", "Also compile and rank the kernel's autotuning configurations, all or N.", None
    ),
    kernel: str | None = options.option(
        "--kernel FILE.py:KERNEL",
        "Import this file to compile --vary and --configs. A record never imports code.",
        None,
    ),
    keep: options.Keep = None,
    budget: options.Budget = None,
    json: options.Json = False,
) -> None:
    """Rank launches or configurations by predicted time, fastest first. No GPU needed."""
    from artifact_inspector.api.launches import has_tuning_launches
    from artifact_inspector.api.ranking_problems import rank_pairs, rank_recorded, rank_variants, reference_pairs
    from artifact_inspector.cli._budget import budget_seconds
    from artifact_inspector.cli._launches import requested_pairs
    from artifact_inspector.cli._loading import open_cache_or_fail, read_filters
    from artifact_inspector.execution.interpreter.budget import limit_simulation
    from artifact_inspector.execution.timing.variations import parse_variations
    from artifact_inspector.facts.selection import select_kernels
    from artifact_inspector.hardware.products import modelled_product
    from artifact_inspector.report.json.prediction import RankingDocument
    from artifact_inspector.report.progress import progress_bar
    from artifact_inspector.report.ranking import RankingReport

    varied, name = _split_arguments(varied_texts, [*context.args, *([selection.name] if selection.name else [])])
    opened = open_cache_or_fail(selection.cache)
    filters = read_filters(selection.target, selection.properties)
    gpu = modelled_product(gpu, selection.target)
    is_recorded = launches.is_recorded
    # `capture --configs all` records the launch of each configuration
    has_all_configs = configs == "all" and is_recorded and has_tuning_launches(opened, name, filters)
    rank_all = not varied and (configs is None or has_all_configs)
    pairs = reference_pairs(opened, name, filters) if is_recorded and not rank_all else []
    pairs = pairs or requested_pairs(launches, opened, name, filters, all_variants=rank_all)
    if rank_all:
        _report_unlaunched(select_kernels(opened, name, filters), [entry for entry, _ in pairs])
    with scratch_directory() as scratch:
        if rank_all:
            problem = rank_recorded(pairs) if is_recorded else rank_pairs(pairs)
        else:
            total = [0]
            with progress_bar(lambda: total[0], "compiling") as advance:
                problem = rank_variants(
                    pairs,
                    parse_variations(varied),
                    configs,
                    keep or Path(scratch),
                    is_recorded=is_recorded,
                    kernel=kernel,
                    on_planned=lambda count: total.__setitem__(0, count),
                    progress=lambda result: advance(result.kernel),
                )
        with limit_simulation(budget_seconds(budget)):
            ranking = _rank_candidates(problem.candidates, gpu, launches.steps, launches.nvdisasm)
    if json:
        print_json(
            RankingDocument(
                rank=tuple(ranking), failed=problem.failed, problems=problem.problem_labels, notes=problem.notes
            )
        )
    else:
        print_report(RankingReport(ranking, problem.failed, problem.problem_labels, problem.notes))
        directory = selection.cache if rank_all else keep
        if directory is not None and ranking and ranking[0].score is not None:
            print_next(*(["advise"] if rank_all and is_recorded else []), directory, ranking[0].hash[:8])
    if all(row.score is None for row in ranking):
        notice("Nothing was ranked: no launch could be scored. The output has the reason of each.")
        raise SystemExit(DIFFERENT)


def _report_unlaunched(entries: Sequence[Artifact], launched: Sequence[Artifact]) -> None:
    names = {entry.display_name for entry in launched}
    directories = {entry.directory for entry in launched}
    missing = [x for x in entries if x.display_name in names and x.directory not in directories]
    if missing:
        listed = ", ".join(f"{entry.display_name} {entry.hash[:8]}" for entry in missing[:MAX_MISSING])
        more = f" and {len(missing) - MAX_MISSING} more" if len(missing) > MAX_MISSING else ""
        count = f"{len(missing)} of {len(entries)} kernels"
        large = sum(
            x.target is not None and (x.shared_bytes or 0) > (x.target.limits.shared_per_block or inf) for x in missing
        )
        reason = f"no launch fits them{f' ({large} need more shared memory than a CTA may have)' if large else ''}"
        remedy = " Give --grid." if large < len(missing) else ""
        notice(f"{count} are not ranked: {reason}: {listed}{more}.{remedy}")


def _split_arguments(option_texts: list[str] | None, extra_arguments: list[str]) -> tuple[list[str], str | None]:
    """The values to vary and the kernel's name; words with `=` after `--vary` belong to it.

    Raises:
        UsageError: there are further words.
    """
    varied = list(option_texts or ())
    names = [argument for argument in extra_arguments if "=" not in argument]
    if len(names) > 1 or (not varied and len(extra_arguments) > len(names)):
        raise UsageError(f"Unexpected argument {extra_arguments[0]!r}.", "Expected CACHE, NAME and options.")
    return varied + [argument for argument in extra_arguments if "=" in argument], names[0] if names else None


def _rank_candidates(
    candidates: Sequence[RankingCandidate], gpu: str | None, steps: int, nvdisasm: Path | None
) -> list[RankedLaunch]:
    from artifact_inspector.api.rank_warnings import warn_of_unwritten_registers
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.compiling.ask.compile import count_processors
    from artifact_inspector.execution.timing.ranking import rank_launches, sort_by_score
    from artifact_inspector.report.progress import progress_bar

    disassemble = make_disassembler([candidate.artifact for candidate in candidates], nvdisasm, sass=True)
    best: list[RankedLaunch] = []

    def report_row(row: RankedLaunch) -> None:
        best[:] = sort_by_score([*best, row])[:1]
        advance(f"best so far: {best[0].label or best[0].hash[:12]}")

    with progress_bar(len(candidates), "ranking") as advance:
        advance(candidates[0].artifact.display_name)
        rows = rank_launches(
            candidates, disassemble, gpu=gpu, limit=steps, processors=count_processors(), progress=report_row
        )
    return warn_of_unwritten_registers(rows, candidates, disassemble)

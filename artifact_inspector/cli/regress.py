"""`inspect-kernel regress`: what got worse between two caches, releases or commits; exit code 1 if anything did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import DIFFERENT, exit_codes
from artifact_inspector.cli._launches import LaunchFile, read_launch_file
from artifact_inspector.cli._loading import make_disassembler, make_inspector
from artifact_inspector.cli._options import CompileTargets, Const, Json, Keep, Signature, Stages, TritonOptions, Warps
from artifact_inspector.cli._output import notice, print_json, print_report
from artifact_inspector.cli.compile import read_requests
from artifact_inspector.cli.diff import require_pairs, select_sides
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.comparison.corpus import Change, Corpus
    from artifact_inspector.comparison.pair_price import PairPrice
    from artifact_inspector.compiling import KernelRequest
    from artifact_inspector.files.cache import Artifact, Problem


@app.command()
def regress(
    a: Annotated[str, typer.Argument(metavar="A", help="The old cache, CACHE:NAME, or FILE.py:KERNEL to compile.")],
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="The new cache or CACHE:NAME; omit it for FILE.py:KERNEL.")
    ] = None,
    triton: Annotated[
        str | None,
        typer.Option("--triton", metavar="A,B", help="Compile FILE.py:KERNEL with these two releases: 3.5.1,3.6.0."),
    ] = None,
    commits: Annotated[
        str | None,
        typer.Option("--commits", metavar="A,B", help="Compile FILE.py:KERNEL from these two commits: HEAD~1,HEAD."),
    ] = None,
    left: Annotated[
        list[str] | None,
        typer.Option(
            "--left", metavar="WHICH", help="Select kernels of A: a GPU, version, w4, s3, tile, name or hash."
        ),
    ] = None,
    right: Annotated[
        list[str] | None, typer.Option("--right", metavar="WHICH", help="Select kernels of B the same way.")
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(
            "--across", metavar="AXIS", help="Pair kernels that differ in this: target, version, config, source."
        ),
    ] = None,
    target: CompileTargets = None,
    launch: LaunchFile = None,
    prices: Annotated[
        bool,
        typer.Option("--prices", metavar="", help="Predict the times of launches on record; takes seconds per kernel."),
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", metavar="", help="List kernels that are neither better nor worse too.")
    ] = False,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: TritonOptions = None,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """List what got worse between two caches, releases or commits, with the cause of each kernel.

    Exit codes: 0 nothing got worse, 1 something did, 2 usage, 3 nothing could be read.
    """
    with exit_codes(json=json):
        from artifact_inspector.comparison.regressions import find_regressions
        from artifact_inspector.report.json.comparison import regress_document
        from artifact_inspector.report.regress import RegressReport
        from artifact_inspector.vocabulary.fact import Sign

        roots: list[Path] = []
        if triton is not None or commits is not None:
            (request,) = read_requests([a], signature, const, num_warps, num_stages, option)
            if b is not None:
                raise UsageError(f"{b} is a second kernel.", "With --triton or --commits give one FILE.py:KERNEL.")
            sides = _compile_sides(request, target or [], triton, commits, keep)
            corpus = _compare(*sides, across or [], (), is_named=False)
        else:
            from artifact_inspector.comparison.sides import parse_cache_selector

            (old, new), problems, named = select_sides((a, b, left or [], right or []), target or [])
            roots = [parse_cache_selector(side).directory for side in (a, b or a)]
            corpus = _compare(old, new, across or [], problems, is_named=named)
        regressions = find_regressions(corpus, _make_predictor(corpus, roots, launch, prices=prices))
        if json:
            print_json(regress_document(regressions))
        else:
            print_report(RegressReport(regressions, show_all))
        if regressions.count(Sign.WORSE):
            raise typer.Exit(DIFFERENT)


def _compile_sides(
    request: KernelRequest, targets: list[str], triton: str | None, commits: str | None, keep: Path | None
) -> tuple[tuple[Artifact, ...], tuple[Artifact, ...]]:
    from artifact_inspector.api.compiled_sides import compile_commits, compile_releases
    from artifact_inspector.compiling.ask.compile import default_directory
    from artifact_inspector.facts.selection import parse_targets

    target_names = [str(parsed_target) for parsed_target in parse_targets(targets)]
    if not target_names:
        raise UsageError("No GPU to compile for.", "Give one: --target sm_80, --target gfx942 ...")
    out = default_directory() if keep is None else keep
    releases = [] if triton is None else [name.strip() for name in triton.split(",") if name.strip()]
    if commits is None:
        return compile_releases(request, target_names, releases, out, notice)
    return compile_commits(request, target_names, [name.strip() for name in commits.split(",")], out, releases)


def _compare(
    old: tuple[Artifact, ...],
    new: tuple[Artifact, ...],
    across: list[str],
    problems: Sequence[tuple[str, Problem]],
    *,
    is_named: bool,
) -> Corpus:
    from artifact_inspector.comparison.corpus import compare_corpora
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.report.progress import progress_bar

    axes = parse_axes(across)
    is_pair = len(old) == len(new) == 1
    with progress_bar(max(len(old), len(new)), "comparing") as advance:
        corpus = compare_corpora(
            old, new, make_inspector(None), across=axes, progress=advance, is_one_pair=is_pair, always=is_pair
        )
    corpus = replace(corpus, problems=(*problems, *corpus.problems))
    require_pairs(corpus, axes, len(old), len(new), is_named=is_named)
    return corpus


def _make_predictor(
    corpus: Corpus, roots: Sequence[Path], launch: Path | None, *, prices: bool
) -> Callable[[Change], PairPrice | None]:
    """Predicts the times of a launch of both kernels: the given one, or with `prices` those on record."""
    from artifact_inspector.api.pair_prices import find_pair_launch, predict_pair

    given_request = None if launch is None else read_launch_file(launch)[0]
    artifacts = [change.right.artifact for change in corpus.changes]
    disassemble = make_disassembler(artifacts, None, sass=True) if given_request or prices else None

    def predict(change: Change) -> PairPrice | None:
        left, right = change.left.artifact, change.right.artifact
        request = given_request
        if request is None and prices:
            request = find_pair_launch(left, right, roots)
        return None if request is None else predict_pair(left, right, request, disassemble)

    return predict

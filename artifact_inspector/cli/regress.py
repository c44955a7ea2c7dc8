"""`inspect-kernel regress`: what got worse between two caches, releases or commits; exit code 1 if anything did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import CompileOptions
from artifact_inspector.cli._output import notice, print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.comparison.corpus import Change, Corpus
    from artifact_inspector.comparison.pair_price import PairPrice
    from artifact_inspector.compiling import KernelRequest
    from artifact_inspector.files.cache import Artifact


@command()
def regress(
    compiling: CompileOptions,
    a: Annotated[str, options.argument("A", "The old cache, CACHE:NAME, or FILE.py:KERNEL to compile.")],
    b: str | None = options.argument("B", "The new cache or CACHE:NAME; omit it for FILE.py:KERNEL.", None),
    triton: str | None = options.option(
        "--triton A,B", "Compile FILE.py:KERNEL with these two releases: 3.5.1,3.6.0.", None
    ),
    commits: str | None = options.option(
        "--commits A,B", "Compile FILE.py:KERNEL from these two commits: HEAD~1,HEAD.", None
    ),
    left: options.LeftSide = None,
    right: options.RightSide = None,
    across: options.Across = None,
    target: options.CompileTargets = None,
    launch: options.LaunchFile = None,
    prices: bool = options.option(
        "--prices", "Predict the times of launches on record; takes seconds per kernel.", False
    ),
    show_all: bool = options.option("--all -a", "List kernels that are neither better nor worse too.", False),
    keep: options.Keep = None,
    json: options.Json = False,
) -> None:
    """List what got worse between two caches, releases or commits, with the cause of each kernel.

    Exit codes: 0 nothing got worse, 1 something did, 2 usage, 3 nothing could be read.
    """
    from artifact_inspector.cli._requests import read_requests
    from artifact_inspector.cli._sides import SelectedSides, compare_sides, select_sides
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.comparison.regressions import find_regressions
    from artifact_inspector.comparison.sides import parse_cache_selector
    from artifact_inspector.facts.selection import parse_filters
    from artifact_inspector.report.corpus import RegressReport
    from artifact_inspector.report.json.comparison import regress_document
    from artifact_inspector.vocabulary.fact import Sign

    roots: list[Path] = []
    if triton is not None or commits is not None:
        (request,) = read_requests([a], compiling)
        if b is not None:
            raise UsageError(f"{b} is a second kernel.", "With --triton or --commits give one FILE.py:KERNEL.")
        sides = SelectedSides(*_compile_sides(request, target or [], triton, commits, keep))
    else:
        sides = select_sides(a, b, left or [], right or [], parse_filters(target or []))
        roots = [parse_cache_selector(side).directory for side in (a, b or a)]
    corpus = compare_sides(sides, parse_axes(across or []), None, always=sides.is_pair)
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
    from artifact_inspector.cli._requests import target_names
    from artifact_inspector.compiling.ask.compile import default_directory

    names = target_names(targets)
    if not names:
        raise UsageError("No GPU to compile for.", "Give one: --target sm_80, --target gfx942 ...")
    out = default_directory() if keep is None else keep
    releases = [] if triton is None else [name.strip() for name in triton.split(",") if name.strip()]
    if commits is None:
        return compile_releases(request, names, releases, out, notice)
    return compile_commits(request, names, [name.strip() for name in commits.split(",")], out, releases)


def _make_predictor(
    corpus: Corpus, roots: Sequence[Path], launch: Path | None, *, prices: bool
) -> Callable[[Change], PairPrice | None]:
    """Predicts the times of a launch of both kernels: the given one, or with `prices` those on record."""
    from artifact_inspector.api.pair_prices import find_pair_launch, predict_pair
    from artifact_inspector.cli._launches import read_launch_file
    from artifact_inspector.cli._loading import make_disassembler

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

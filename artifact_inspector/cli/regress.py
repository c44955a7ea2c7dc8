"""`inspect-kernel regress`: what got worse between two caches, releases or commits; exit code 1 if anything did."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import CompileOptions
from artifact_inspector.cli._output import notice, print_json, print_next, print_report
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.vocabulary.fact import Sign

if TYPE_CHECKING:
    from artifact_inspector.comparison.corpus import Change, Corpus
    from artifact_inspector.comparison.fact_pair import FactPair
    from artifact_inspector.comparison.pair_price import PairPrice
    from artifact_inspector.comparison.regressions import KernelOutcome
    from artifact_inspector.compiling import KernelRequest
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.files.cache import Artifact

MOST_TRIED = 3
"""Changes that are listed for a kernel without a predicted time."""
MOST_EXPLAINED = 3
"""Kernels that `--why` explains."""
REMEDY_SECONDS = 30.0
"""Time for the remedies of one kernel."""
WHY_SECONDS = 120.0
"""Elapsed time for all that `--why` does for one kernel."""
STEPS_OF_WHY = ("a later release", "what removes spills", "remedies", "options", "the pass")
"""The pass comes last: its compiles write all texts of large kernels."""
_KERNEL_FILE = re.compile(r".+\.py:\w+")


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
        "--prices", "Predict the times of launches on record; takes seconds per kernel; a second run resumes.", False
    ),
    why: bool = options.option(
        "--why", "Compile the 3 worst kernels again: name the pass, and try remedies, for at most 120 s each.", False
    ),
    show_all: bool = options.option("--all -a", "List kernels that are neither better nor worse too.", False),
    budget: options.Budget = None,
    keep: options.Keep = None,
    scheduler: options.Scheduler = None,
    output: Path | None = options.option("--output -o FILE", "Write the list to FILE too: .md or .json.", None),
    json: options.Json = False,
) -> None:
    """List what got worse between two caches, releases or commits, with the cause of each kernel.

    Exit codes: 0 nothing got worse, 1 something did, 2 usage, 3 nothing could be read.
    """
    from artifact_inspector.cli._budget import limit_times
    from artifact_inspector.cli._requests import read_requests
    from artifact_inspector.cli._sides import SelectedSides, compare_sides, select_sides
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.comparison.regressions import find_regressions
    from artifact_inspector.comparison.sides import parse_cache_selector
    from artifact_inspector.facts.selection import parse_filters
    from artifact_inspector.files.writer import write_text
    from artifact_inspector.hardware.products import modelled_product
    from artifact_inspector.report.corpus import RegressReport
    from artifact_inspector.report.exchange.markdown import regressions_markdown
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.comparison import regress_document

    if output is not None and output.suffix not in (".md", ".json"):
        raise UsageError(f"The suffix of {output} names no format.", "Expected .md or .json.")
    roots: list[Path] = []
    if triton is not None or commits is not None:
        (request,) = read_requests([a], compiling)
        if b is not None:
            raise UsageError(f"{b} is a second kernel.", "With --triton or --commits give one FILE.py:KERNEL.")
        sides = SelectedSides(*_compile_sides(request, target or [], triton, commits, keep))
    else:
        sides = select_sides(a, b, left or [], right or [], parse_filters(target or []))
        roots = [parse_cache_selector(side).directory for side in (a, b or a)]
    stores = not (sides.is_pair or prices or why or launch)
    corpus = compare_sides(
        sides, parse_axes(across or []), None, always=sides.is_pair, scheduler=scheduler, stores=stores, by_name=True
    )
    with limit_times(budget, is_needed=prices or why or launch is not None):
        predict = _make_predictor(corpus, roots, launch, modelled_product(None, target), prices=prices)
        regressions = find_regressions(corpus, predict)
        if why:
            from artifact_inspector.cli._budget import budget_seconds

            seconds = WHY_SECONDS if budget is None else budget_seconds(budget)
            worst, others = regressions.outcomes[:MOST_EXPLAINED], regressions.outcomes[MOST_EXPLAINED:]
            explained = [_explain(outcome, roots, launch, a if b is None else None, seconds) for outcome in worst]
            regressions = replace(regressions, outcomes=(*explained, *others))
    if output is not None:
        is_json = output.suffix == ".json"
        document = as_text(regress_document(regressions), "utf-8") if is_json else ""
        write_text(output, document or regressions_markdown(regressions, lists_all=show_all))
    if json:
        print_json(regress_document(regressions))
    else:
        print_report(RegressReport(regressions, show_all))
        if regressions.outcomes and regressions.outcomes[0].change.direction is Sign.WORSE:
            first = regressions.outcomes[0].change
            entries = [first.left.artifact, first.right.artifact]
            sides_named = [f"{root}:{entry.hash[:12]}" for root, entry in zip(roots, entries, strict=False)]
            if not roots:
                from artifact_inspector.api.trial import entry_directory

                sides_named = list(map(entry_directory, entries))
            print_next("diff", *sides_named, *(["--launch", launch] if launch else []))
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
    corpus: Corpus, roots: Sequence[Path], launch: Path | None, gpu: str | None, *, prices: bool
) -> Callable[[Change], PairPrice | None]:
    """Predicts the times of a launch of both kernels: the given one, or with `prices` those on record."""
    if launch is None and not prices:
        return lambda change: None  # imports no simulation
    from artifact_inspector.api.pair_prices import find_pair_launch, predict_pair, recall_price, unknown_price
    from artifact_inspector.cli._launches import read_launch_file
    from artifact_inspector.cli._loading import cached_lookup, make_disassembler

    given_request = None if launch is None else read_launch_file(launch)[0]
    artifacts = [change.right.artifact for change in corpus.changes]
    disassemble = make_disassembler(artifacts, None, sass=True)

    def predict(change: Change) -> PairPrice | None:
        left, right = change.left.artifact, change.right.artifact
        try:
            request = given_request or find_pair_launch(left, right, roots)
        except UsageError as error:
            return unknown_price(error.message)
        if request is None:
            return None
        index = cached_lookup(None).index
        compute = partial(
            predict_pair, left, right, request, disassemble, (gpu, gpu), facts=change.facts, open_index=index
        )
        return recall_price(index, (left, right), request, compute, gpu)

    return predict


def _explain(
    outcome: KernelOutcome, roots: Sequence[Path], launch: Path | None, source: str | None, seconds: float
) -> KernelOutcome:
    """The outcome with the passes that set its decisive fact, and what lowers the predicted time of the new kernel.

    Steps that do not end in time are named.
    """
    from artifact_inspector.api.remedies import find_release
    from artifact_inspector.api.time_limit import collect_within
    from artifact_inspector.cli.diff import attribute_passes
    from artifact_inspector.comparison.consequence import consequence_of
    from artifact_inspector.compiling.ask.environments import own_triton_version
    from artifact_inspector.model import Consequence

    pair, headline = outcome.change.pair, outcome.change.headline
    if outcome.change.direction is not Sign.WORSE or pair is None or headline is None:
        return outcome
    left, right = outcome.change.left.artifact, outcome.change.right.artifact

    installed, recorded, notes = own_triton_version() or "", right.triton_version, list[str]()
    if recorded is not None and not recorded.may_match(find_release(recorded, installed)[0]):
        notes = [f"Triton {recorded} is not installed: remedies were compiled by Triton {installed}."]

    def explain() -> Iterator[dict[str, Any]]:
        trials = _try_release(left, right, headline.fact, roots, launch, source)
        yield {"trials": trials}
        is_spill = consequence_of(headline.fact) is Consequence.SPILLS
        if is_spill:  # facts tell what removes it, within less time than predictions take
            trials = (*trials, *_try_options(right), *_try_changes(right, headline.fact, source))[:MOST_TRIED]
        yield {"trials": trials}
        searched = _search_remedies(left, right, roots, launch, source)
        yield searched
        if not (is_spill or searched.get("remedies")):
            trials = (*trials, *_try_options(right), *_try_changes(right, headline.fact, source))[:MOST_TRIED]
        yield {"trials": trials, "untried": " ".join([*([] if trials else [searched["untried"]]), *notes]).strip()}
        try:
            yield {"passes": tuple(line.strip() for line in attribute_passes(pair, [headline.fact])[0][1:])}
        except InspectorError as error:
            yield {"passes": (f"no pass was found: {error.message}",)}

    results, is_complete = collect_within(seconds, explain)
    for result in results:
        outcome = replace(outcome, **result)
    if is_complete:
        return outcome
    missing = ", ".join(STEPS_OF_WHY[len(results) :])
    return replace(outcome, untried=f"{seconds:g} s were not enough for {missing}; --budget raises them")


def _find_launch(left: Artifact, right: Artifact, roots: Sequence[Path], launch: Path | None) -> LaunchRequest | None:
    """The given launch, or the new kernel's on record; None if none is on record, or none fits both kernels."""
    from artifact_inspector.api.pair_prices import find_pair_launch
    from artifact_inspector.cli._launches import read_launch_file

    if launch is not None:
        return read_launch_file(launch)[0]
    with suppress(UsageError):
        pair = find_pair_launch(left, right, roots)
        return None if pair is None else pair[1]
    return None


def _kernel_of(source: str | None) -> str | None:
    """`FILE.py:KERNEL`, if that is what was compared."""
    return source if _KERNEL_FILE.fullmatch(source or "") else None


def _search_remedies(
    left: Artifact, right: Artifact, roots: Sequence[Path], launch: Path | None, source: str | None
) -> dict[str, Any]:
    """`remedies` of the new kernel, and `untried`: why there is none."""
    from artifact_inspector.api.advice import diagnose_launches, with_launch_times
    from artifact_inspector.api.pair_prices import MAX_STEPS
    from artifact_inspector.api.remedy_search import search_remedies
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.diagnosis.assumed_launch import assume_launch
    from artifact_inspector.files.scratch import scratch_directory

    try:
        entry = right, _find_launch(left, right, roots, launch) or assume_launch(right)
        disassemble = make_disassembler([right], None, sass=True)
        diagnoses = diagnose_launches([entry], disassemble, steps=MAX_STEPS)
        (diagnosis,) = with_launch_times([entry], diagnoses, disassemble, steps=MAX_STEPS)
        with scratch_directory() as scratch:
            search = search_remedies(
                entry,
                diagnosis,
                lambda entries: make_disassembler(entries, None, sass=True),
                Path(scratch),
                steps=MAX_STEPS,
                kernel=_kernel_of(source),
                budget=REMEDY_SECONDS,
            )
    except InspectorError as error:
        return {"remedies": (), "untried": f"No remedy was tried: {error.message}"}
    return {"remedies": search.remedies, "untried": search.reason}


def _try_release(
    left: Artifact, right: Artifact, worse: FactPair, roots: Sequence[Path], launch: Path | None, source: str | None
) -> tuple[str, ...]:
    """The installed release as a remedy of a kernel that an older one compiled; empty if it does not help."""
    from artifact_inspector.api.option_trials import try_release
    from artifact_inspector.api.pair_prices import predict_pair
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.files.scratch import scratch_directory

    def predict(entry: Artifact) -> PairPrice | None:
        if (request := _find_launch(left, right, roots, launch)) is None:
            return None
        disassemble = make_disassembler([right, entry], None, sass=True)
        return predict_pair(right, entry, request, disassemble, has_overlap=False)

    try:
        with scratch_directory() as scratch:
            return tuple(try_release(right, worse, _kernel_of(source), Path(scratch), predict))
    except InspectorError:
        return ()


def _try_changes(artifact: Artifact, worse: FactPair, source: str | None) -> tuple[str, ...]:
    """The tiles and options with which the kernel's source compiles to something better, each as a sentence."""
    from artifact_inspector.api.option_trials import try_changes
    from artifact_inspector.files.scratch import scratch_directory

    try:
        with scratch_directory() as scratch:
            return tuple(try_changes(artifact, worse, _kernel_of(source), Path(scratch)))
    except InspectorError:
        return ()


def _try_options(artifact: Artifact) -> tuple[str, ...]:
    """The options that findings suggest and that compile to something better, each as a sentence."""
    from artifact_inspector.api.remedies import try_switches
    from artifact_inspector.facts.inspection import inspect_artifact

    try:
        trials, _ = try_switches(inspect_artifact(artifact))
    except InspectorError:
        return ()
    headlines = {
        trial.switch.description: trial.reach.change.headline
        for trial in trials
        if trial.reach is not None and trial.reach.change is not None
    }
    return tuple(
        headline.as_remedy(switch)
        for switch, headline in headlines.items()
        if headline is not None and headline.fact.direction is Sign.BETTER
    )

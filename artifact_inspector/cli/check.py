"""`inspect-kernel check`: compare a cache with a baseline; exit code 1 if a gate fails."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.cli._output import print_next, print_report
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from artifact_inspector.comparison.baseline import Baseline, BaselineKernel
    from artifact_inspector.comparison.corpus import Corpus
    from artifact_inspector.comparison.matching import Candidate
    from artifact_inspector.comparison.pair_price import PairPrice
    from artifact_inspector.files.cache import Artifact, Cache

FORMATS = ("text", "json", "markdown", "junit", "sarif", "github")
SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit", ".sarif": "sarif"}


@command()
def check(
    selection: Selection,
    code: MachineCode,
    baseline: Path = options.option(
        "--baseline -b FILE", "Compare with this file of `inspect-kernel baseline`.", Path("baseline.json")
    ),
    fail_on: list[str] | None = options.option(
        "--fail-on WHAT",
        "Exit with 1 if this got worse: time, verdict, spills, waits, mma, shared, registers, loads, gone, "
        "new, code, any ... Default: "
        "time,verdict,spills,waits,mma,atomics,shared,occupancy,loads,stores,conversions,barriers,gone. "
        "With time, the predicted time of a kernel decides, not its facts; facts decide where it is unknown.",
        None,
    ),
    threshold: float = options.option(
        "--threshold PERCENT", "A predicted time that is longer by more than this got worse.", 3.0, min=0.0
    ),
    budget: options.Budget = None,
    strict: bool = options.option("--strict", "Fail on any change of a checked fact, also on improvements.", False),
    across: list[str] | None = options.option(
        "--across AXIS",
        "Pair kernels that differ in this: target, config, source. "
        "Versions may differ if the two sides have none in common.",
        None,
    ),
    format: str = options.option(
        "--format -f FORMAT", "Print as text, json, markdown, junit, sarif or github.", "text"
    ),
    outputs: list[Path] | None = options.option(
        "--output -o FILE",
        "Write the check to FILE in the format of its suffix: .sarif, .xml (JUnit), .json, .md.",
        None,
    ),
    json: options.Json = False,
) -> None:
    """Compare a cache with a baseline; fail if a checked fact got worse.

    Exit codes: 0 no checked fact got worse, 1 one did, 2 usage, 3 nothing could be read.
    """
    from artifact_inspector.comparison.baseline import DEFAULT_GATES
    from artifact_inspector.comparison.corpus import parse_gates
    from artifact_inspector.files.writer import write_text
    from artifact_inspector.report.console import write
    from artifact_inspector.report.corpus import CheckReport

    format = "json" if json else format
    files = {path: _format_of(path) for path in outputs or []}
    options.require_format(format, FORMATS)
    gates = DEFAULT_GATES if fail_on is None else parse_gates(fail_on)
    baseline_facts = _read_baseline(baseline, selection.name)
    corpus = _compare(baseline_facts, selection, code, across or [], threshold if "time" in gates else None, budget)
    for path, kind in files.items():
        write_text(path, _format_check(kind, baseline_facts, corpus, gates, "utf-8", threshold, is_strict=strict))
    if format == "text":
        print_report(CheckReport(baseline_facts, corpus, gates, strict))
        failing = [x for x in corpus.changes if x.describe_failure(gates, is_strict=strict)]
        if failing and selection.cache is not None:
            print_next(selection.cache, failing[0].right.artifact.hash[:8])
    else:
        text = _format_check(format, baseline_facts, corpus, gates, sys.stdout.encoding, threshold, is_strict=strict)
        write(text, sys.stdout, commands=format == "github")
    if corpus.failures(gates, is_strict=strict):
        raise typer.Exit(DIFFERENT)


def _format_of(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"The suffix of {path} names no format.", f"Expected one of {', '.join(SUFFIXES)}.")
    return SUFFIXES[path.suffix]


def _read_baseline(path: Path, name: str | None) -> Baseline:
    from artifact_inspector.files.reader import read_user_text
    from artifact_inspector.report.json.baseline_reading import parse_baseline

    try:
        return parse_baseline(read_user_text(path), str(path))
    except OSError as error:
        record_command = f"Record one: inspect-kernel baseline CACHE -o {path}"
        is_swapped = name is not None and Path(name).is_file()
        raise CacheError(
            f"The baseline {path} could not be read: {error.strerror or error}.",
            f"If {name} is the baseline, write --baseline {name}." if is_swapped else record_command,
        ) from None


def _make_predictor(
    baseline: Baseline, cache: Cache, artifacts: Sequence[Artifact], nvdisasm: Path | None, threshold: float
) -> Callable[[BaselineKernel, Candidate], PairPrice | None]:
    """Predicts the time of a kernel that changed, beside the recorded one."""
    from artifact_inspector.api.pair_prices import price_record, unknown_price
    from artifact_inspector.cli._launches import make_time_predictor
    from artifact_inspector.compiling.ask.manifest import group_launches
    from artifact_inspector.version import __version__

    launches, predict_time = group_launches(cache.root, [x.directory for x in artifacts]), make_time_predictor(nvdisasm)

    def predict(recorded: BaselineKernel, candidate: Candidate) -> PairPrice | None:
        if not recorded.times:
            return None
        if baseline.generator != __version__:
            return unknown_price(f"inspect-kernel {baseline.generator} predicted the recorded times")
        recorded_launches = launches.get(candidate.artifact.hash, [])
        return replace(
            price_record(recorded, candidate, recorded_launches, cache.root, predict_time), same_within=threshold / 100
        )

    return predict


def _compare(
    baseline: Baseline,
    selection: Selection,
    code: MachineCode,
    across: list[str],
    threshold: float | None,
    budget: str | None,
) -> Corpus:
    from artifact_inspector.cli import _loading as loading
    from artifact_inspector.cli._budget import limit_times
    from artifact_inspector.comparison.baseline import compare_with_baseline, stored_digests
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.facts.selection import select_kernels
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.report.progress import progress_bar

    axes, filters = parse_axes(across), loading.read_filters(selection.target, selection.properties)
    opened = loading.open_cache_or_fail(selection.cache, can_be_empty=True)
    recorded = Cache(Path(), tuple(x.artifact for x in baseline.kernels), (), ())
    compared_ids = {id(x) for x in select_kernels(recorded, selection.name, filters)}
    try:
        artifacts = select_kernels(opened, selection.name, filters)
    except UsageError:
        artifacts = ()  # every kernel of the baseline is gone
    disassemble = loading.make_disassembler(artifacts, code.nvdisasm, sass=code.sass)
    index = loading.cached_lookup(None).index
    predict = None
    if threshold is not None and any(kernel.times for kernel in baseline.kernels):  # else no simulation is imported
        predict = _make_predictor(baseline, opened, artifacts, code.nvdisasm, threshold)
    with (
        limit_times(budget, is_needed=predict is not None),
        progress_bar(len(artifacts), "checking") as advance,
        stored_digests(artifacts, index) as find_digests,
    ):
        return compare_with_baseline(
            [x for x in baseline.kernels if id(x.artifact) in compared_ids],
            artifacts,
            loading.make_inspector(disassemble),
            across=axes,
            problems=opened.problems,
            progress=advance,
            known_keys=baseline.known_keys,
            find_digests=find_digests,
            predict=predict or (lambda recorded, candidate: None),
        )


def _format_check(
    format: str,
    baseline: Baseline,
    corpus: Corpus,
    gates: tuple[str, ...],
    encoding: str | None,
    threshold: float,
    *,
    is_strict: bool,
) -> str:
    """The check as text in one of the formats."""
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.model.location import base_name
    from artifact_inspector.report.exchange.junit import junit_text
    from artifact_inspector.report.exchange.markdown import corpus_markdown
    from artifact_inspector.report.exchange.sarif import sarif_document, workflow_commands
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.baseline import check_document
    from artifact_inspector.report.remarks import GATE_RULES, change_remarks, merge_remarks

    def find_text(file: str) -> str | None:
        """The file here, else the only one of that name in the tree that the baseline was recorded in."""
        sources = {kernel.source for kernel in baseline.kernels if kernel.source and "/" in kernel.source}
        recorded = [source for source in sources if base_name(source) == base_name(file)]
        return find_source(file, Path.cwd()) or (recorded[0] if len(recorded) == 1 else None)

    remarks = change_remarks(corpus, gates, find_text, is_strict=is_strict)
    match format:
        case "json":
            return as_text(check_document(corpus, gates, baseline, threshold, is_strict=is_strict), encoding)
        case "markdown":
            return corpus_markdown(corpus, gates, is_strict=is_strict)
        case "junit":
            return junit_text(corpus, gates, "inspect-kernel check", is_strict=is_strict)
        case "sarif":
            return as_text(sarif_document(GATE_RULES, remarks), encoding)
        case _:
            return workflow_commands(merge_remarks(remarks, corpus))

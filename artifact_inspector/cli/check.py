"""`inspect-kernel check`: compare a cache with a baseline; exit code 1 if a gate fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import DIFFERENT, exit_codes
from artifact_inspector.cli._loading import make_disassembler, make_inspector, open_cache_or_fail
from artifact_inspector.cli._options import (
    CacheDirectory,
    Json,
    KernelName,
    Nvdisasm,
    ReadTargets,
    Sass,
    Where,
    read_selectors,
    require_format,
)
from artifact_inspector.cli._output import print_report
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.comparison.baseline import Baseline
    from artifact_inspector.comparison.corpus import Corpus
    from artifact_inspector.facts.selection import KernelFilter

FORMATS = ("text", "json", "markdown", "junit", "sarif", "github")
SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit", ".sarif": "sarif"}


@app.command()
def check(
    cache: CacheDirectory = None,
    name: KernelName = None,
    baseline: Annotated[
        Path,
        typer.Option("--baseline", "-b", metavar="FILE", help="Compare with this file of `inspect-kernel baseline`."),
    ] = Path("baseline.json"),
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="WHAT",
            help="Exit with 1 if this got worse: verdict, spills, waits, mma, shared, registers, loads, gone, "
            "new, code, any ... Default: verdict,spills,waits,mma,shared,gone.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", metavar="", help="Fail on any change of a gated fact, also on improvements.")
    ] = False,
    across: Annotated[
        list[str] | None,
        typer.Option(
            "--across",
            metavar="AXIS",
            help="Pair kernels that differ in this: target, config, source. "
            "Versions may differ if the two sides have none in common.",
        ),
    ] = None,
    target: ReadTargets = None,
    properties: Where = None,
    format: Annotated[
        str,
        typer.Option("--format", "-f", metavar="FORMAT", help="Print as text, json, markdown, junit, sarif or github."),
    ] = "text",
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the check to FILE in the format of its suffix: .sarif, .xml (JUnit), .json, .md.",
        ),
    ] = None,
    json: Json = False,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Compare a cache with a baseline; fail if a gated fact got worse.

    Exit codes: 0 no gated fact got worse, 1 a gate failed, 2 usage, 3 nothing could be read.
    """
    format = "json" if json else format
    with exit_codes(json=format == "json"):
        from artifact_inspector.comparison.baseline import DEFAULT_GATES
        from artifact_inspector.comparison.corpus import parse_gates
        from artifact_inspector.facts.selection import parse_filters
        from artifact_inspector.files.writer import write_text
        from artifact_inspector.report.console import write

        files = {path: _format_of(path) for path in outputs or []}
        require_format(format, FORMATS)
        gates = DEFAULT_GATES if fail_on is None else parse_gates(fail_on)
        kernel_selectors = parse_filters(read_selectors(target, properties))
        baseline_facts = _read_baseline(baseline, name)
        corpus = _compare(baseline_facts, cache, name, kernel_selectors, across or [], nvdisasm, sass=sass)
        for path, kind in files.items():
            write_text(path, _format_check(kind, baseline_facts, corpus, gates, "utf-8", is_strict=strict))
        if format == "text":
            from artifact_inspector.report.corpus import CheckReport

            print_report(CheckReport(baseline_facts, corpus, gates, strict))
        else:
            text = _format_check(format, baseline_facts, corpus, gates, sys.stdout.encoding, is_strict=strict)
            write(text, sys.stdout, commands=format == "github")
        if corpus.failures(gates, is_strict=strict):
            raise typer.Exit(DIFFERENT)


def _format_of(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"The suffix of {path} names no format.", f"Expected one of {', '.join(SUFFIXES)}.")
    return SUFFIXES[path.suffix]


def _read_baseline(path: Path, name: str | None) -> Baseline:
    from artifact_inspector.files.reader import read_user_text
    from artifact_inspector.report.json.baseline import parse_baseline

    try:
        text = read_user_text(path)
    except OSError as error:
        record_command = f"Record one: inspect-kernel baseline CACHE -o {path}"
        is_swapped = name is not None and Path(name).is_file()
        raise CacheError(
            f"The baseline {path} could not be read: {error.strerror or error}.",
            f"If {name} is the baseline, write --baseline {name}." if is_swapped else record_command,
        ) from None
    return parse_baseline(text, str(path))


def _compare(
    baseline: Baseline,
    path: Path | None,
    name: str | None,
    kernel_selectors: Sequence[KernelFilter],
    across: list[str],
    nvdisasm: Path | None,
    *,
    sass: bool,
) -> Corpus:
    from artifact_inspector.comparison.baseline import compare_with_baseline
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.facts.selection import select_kernels
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.report.progress import progress_bar

    axes = parse_axes(across)
    opened = open_cache_or_fail(path, can_be_empty=True)
    compared_ids = {
        id(x)
        for x in select_kernels(
            Cache(Path(), tuple(x.artifact for x in baseline.kernels), (), ()), name, kernel_selectors
        )
    }
    try:
        artifacts = select_kernels(opened, name, kernel_selectors)
    except UsageError:
        artifacts = ()  # every kernel of the baseline is gone
    disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
    with progress_bar(len(artifacts), "checking") as advance:
        return compare_with_baseline(
            [x for x in baseline.kernels if id(x.artifact) in compared_ids],
            artifacts,
            make_inspector(disassemble),
            across=axes,
            problems=opened.problems,
            progress=advance,
        )


def _format_check(
    format: str, baseline: Baseline, corpus: Corpus, gates: tuple[str, ...], encoding: str | None, *, is_strict: bool
) -> str:
    """The check as text in one of the formats."""
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.report.exchange.junit import junit_text
    from artifact_inspector.report.exchange.markdown import corpus_markdown
    from artifact_inspector.report.exchange.sarif import sarif_document, workflow_commands
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.baseline import check_document
    from artifact_inspector.report.remarks import GATE_RULES, change_remarks, merge_remarks

    def find_text(file: str) -> str | None:
        return find_source(file, Path.cwd())

    remarks = change_remarks(corpus, gates, find_text, is_strict=is_strict)
    match format:
        case "json":
            return as_text(check_document(corpus, gates, baseline, is_strict=is_strict), encoding)
        case "markdown":
            return corpus_markdown(corpus, gates, is_strict=is_strict)
        case "junit":
            return junit_text(corpus, gates, "inspect-kernel check", is_strict=is_strict)
        case "sarif":
            return as_text(sarif_document(GATE_RULES, remarks), encoding)
        case _:
            return workflow_commands(merge_remarks(remarks, corpus))

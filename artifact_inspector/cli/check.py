"""`inspect-kernel check`: compare a cache with a baseline; exit code 1 if a gate fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import FOUND, exit_codes
from artifact_inspector.cli._options import (
    CacheDirectory,
    Json,
    KernelName,
    Nvdisasm,
    Sass,
    Targets,
    Where,
    read_selectors,
    require_format,
)
from artifact_inspector.cli._reading import disassembler, inspect_one, open_or_advise
from artifact_inspector.cli._telling import print_report
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.comparison.baseline import Baseline
    from artifact_inspector.comparison.corpus import Corpus
    from artifact_inspector.facts.selection import Which

FORMATS = ("text", "json", "markdown", "junit", "sarif", "github")
SUFFIXES = {".json": "json", ".md": "markdown", ".xml": "junit", ".sarif": "sarif"}


@app.command()
def check(
    cache: CacheDirectory = None,
    name: KernelName = None,
    baseline: Annotated[
        Path,
        typer.Option(
            "--baseline", "-b", metavar="FILE", help="Compare with this file of `inspect-kernel baseline`."
        ),
    ] = Path("baseline.json"),
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="WHAT",
            help="Exit with 1 if this changed: verdict, spills, waits, mma, shared, registers, loads, gone, "
            "new, code, any ... Default: verdict,spills,waits,mma,shared,gone.",
        ),
    ] = None,
    across: Annotated[
        list[str] | None,
        typer.Option(
            "--across",
            metavar="AXIS",
            help="Pair kernels that differ in this: target, config, source. "
            "Versions may differ if the two sides have none in common.",
        ),
    ] = None,
    target: Targets = None,
    where: Where = None,
    format: Annotated[
        str,
        typer.Option(
            "--format", "-f", metavar="FORMAT", help="Print as text, json, markdown, junit, sarif or github."
        ),
    ] = "text",
    out: Annotated[
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
    """Compare a cache with a baseline; fail if a gated fact changed."""
    format = "json" if json else format
    with exit_codes(json=format == "json"):
        from artifact_inspector.comparison.baseline import DEFAULT_GATES
        from artifact_inspector.comparison.corpus import parse_gates
        from artifact_inspector.facts.selection import parse_which
        from artifact_inspector.files.writing import write_text
        from artifact_inspector.report.console import write

        files = {path: _format_of(path) for path in out or []}
        require_format(format, FORMATS)
        gates = DEFAULT_GATES if fail_on is None else parse_gates(fail_on)
        wanted = parse_which(read_selectors(target, where))
        recorded = _read(baseline, name)
        corpus = _hold(recorded, cache, name, wanted, across or [], nvdisasm, sass=sass)
        for path, kind in files.items():
            write_text(path, _written(kind, recorded, corpus, gates, "utf-8"))
        if format == "text":
            from artifact_inspector.report.check import CheckReport

            print_report(CheckReport(recorded, corpus, gates))
        else:
            text = _written(format, recorded, corpus, gates, sys.stdout.encoding)
            write(text, sys.stdout, commands=format == "github")
        if corpus.failures(gates):
            raise typer.Exit(FOUND)


def _format_of(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise UsageError(f"The suffix of {path} names no format.", f"Expected one of {', '.join(SUFFIXES)}.")
    return SUFFIXES[path.suffix]


def _read(path: Path, name: str | None) -> Baseline:
    from artifact_inspector.files.reading import read_named
    from artifact_inspector.report.json.baseline import parse_baseline

    try:
        text = read_named(path)
    except OSError as error:
        record = f"Record one: inspect-kernel baseline CACHE -o {path}"
        meant = name is not None and Path(name).is_file()
        raise CacheError(
            f"The baseline {path} could not be read: {error.strerror or error}.",
            f"If {name} is the baseline, write --baseline {name}." if meant else record,
        ) from None
    return parse_baseline(text, str(path))


def _hold(
    baseline: Baseline,
    path: Path | None,
    name: str | None,
    wanted: Sequence[Which],
    across: list[str],
    nvdisasm: Path | None,
    *,
    sass: bool,
) -> Corpus:
    from artifact_inspector.comparison.baseline import hold_against
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.facts.selection import choose
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.report.progress import progress_bar

    axes = parse_axes(across)
    found = open_or_advise(path, can_be_empty=True)
    meant = {
        id(x)
        for x in choose(Cache(Path(), tuple(x.artifact for x in baseline.kernels), (), ()), name, wanted)
    }
    try:
        chosen = choose(found, name, wanted)
    except UsageError:
        chosen = ()  # every kernel of the baseline is gone
    disassemble = disassembler(chosen, nvdisasm, sass=sass)
    with progress_bar(len(chosen), "checking") as advance:
        return hold_against(
            [x for x in baseline.kernels if id(x.artifact) in meant],
            chosen,
            inspect_one(disassemble),
            across=axes,
            problems=found.problems,
            progress=advance,
        )


def _written(
    format: str, baseline: Baseline, corpus: Corpus, gates: tuple[str, ...], encoding: str | None
) -> str:
    """The check as text in one of the formats."""
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.report.exchange.annotations import workflow_commands
    from artifact_inspector.report.exchange.junit import junit_text
    from artifact_inspector.report.exchange.markdown import corpus_markdown
    from artifact_inspector.report.exchange.sarif import sarif_document
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.baseline import check_document
    from artifact_inspector.report.remarks import GATE_RULES, change_remarks, told_once

    def find(file: str) -> str | None:
        return find_source(file, Path.cwd())

    match format:
        case "json":
            return as_text(check_document(corpus, gates, baseline), encoding)
        case "markdown":
            return corpus_markdown(corpus, gates)
        case "junit":
            return junit_text(corpus, gates, "inspect-kernel check")
        case "sarif":
            return as_text(sarif_document(GATE_RULES, change_remarks(corpus, gates, find)), encoding)
        case _:
            return workflow_commands(told_once(change_remarks(corpus, gates, find), corpus))

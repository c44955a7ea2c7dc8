"""`inspect-kernel findings`: what stands out in each kernel, and what that means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import (
    CacheDirectory,
    Json,
    KernelName,
    Nvdisasm,
    Sass,
    Targets,
    require_format,
)
from artifact_inspector.cli._reading import disassembler, inspect_kernels, open_or_advise, refuse_unreadable
from artifact_inspector.cli._sources import find_source

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.files.cache import Cache

FORMATS = ("text", "json", "sarif", "github")


@app.command()
def findings(
    cache: CacheDirectory = None,
    name: KernelName = None,
    json: Json = False,
    target: Targets = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="CODE", help="Say what a finding means: AI003, narrow-loads, all."),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="text, json, sarif or github.")
    ] = "text",
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """List what stands out in each kernel, or explain one finding."""
    format = "json" if json else format
    with exit_codes(json=format == "json"):
        require_format(format, FORMATS)
        if explain is not None:
            _explain(explain)
        else:
            _list_findings(cache, name, target or [], nvdisasm, format, sass=sass)


def _list_findings(
    path: Path | None,
    name: str | None,
    targets: list[str],
    nvdisasm: Path | None,
    format: str,
    *,
    sass: bool,
) -> None:
    from artifact_inspector.facts.selection import choose, parse_targets
    from artifact_inspector.findings import find_findings
    from artifact_inspector.report.console import show
    from artifact_inspector.report.findings import FindingsReport

    cache = open_or_advise(path)
    chosen = choose(cache, name, parse_targets(targets))
    disassemble = disassembler(chosen, nvdisasm, sass=sass)
    kernels = list(inspect_kernels(chosen, disassemble, find_findings))
    if format == "text":
        show(FindingsReport(kernels), sys.stdout)
    else:
        _write(cache, kernels, format)
    if kernels or cache.problems:
        refuse_unreadable(kernels)


def _write(cache: Cache, kernels: list[KernelFacts], format: str) -> None:
    from artifact_inspector.report.console import write
    from artifact_inspector.report.exchange.annotations import workflow_commands
    from artifact_inspector.report.exchange.sarif import sarif_document
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.cache import findings_document
    from artifact_inspector.report.remarks import finding_kinds, finding_remarks

    encoding = sys.stdout.encoding
    remarks = finding_remarks(kernels, lambda file: find_source(file, Path.cwd()))
    if format == "json":
        text = as_text(findings_document(kernels, cache.problems), encoding)
    elif format == "sarif":
        text = as_text(sarif_document(finding_kinds(), remarks), encoding)
    else:
        text = workflow_commands(remarks)
    write(text, sys.stdout, commands=format == "github")


def _explain(word: str) -> None:
    from artifact_inspector.report.console import show
    from artifact_inspector.report.findings import RulePages, pick_rules

    show(RulePages(pick_rules(word)), sys.stdout)

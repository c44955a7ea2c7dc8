"""`inspect-kernel findings`: likely performance and correctness problems of each kernel."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._loading import (
    assemble_missing,
    exit_if_unreadable,
    inspect_kernels,
    make_disassembler,
    open_cache_or_fail,
    source_reader,
)
from artifact_inspector.cli._options import (
    Assemble,
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
from artifact_inspector.cli._output import print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.files.cache import Cache

FORMATS = ("text", "json", "sarif", "github")
MAX_TRIED = 8
"""Kernels that `--try` accepts in one run."""


@app.command()
def findings(
    cache: CacheDirectory = None,
    name: KernelName = None,
    json: Json = False,
    target: ReadTargets = None,
    properties: Where = None,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="CODE", help="Explain a finding: AI003, narrow-loads, all.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="Print as text, json, sarif or github.")
    ] = "text",
    try_fixes: Annotated[
        bool,
        typer.Option(
            "--try",
            metavar="",
            help="Compile each kernel with the switches that findings suggest, and print what changed.",
        ),
    ] = False,
    assemble: Assemble = False,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """List likely performance and correctness problems of each kernel, or explain one."""
    format = "json" if json else format
    with exit_codes(json=format == "json"):
        require_format(format, FORMATS)
        kernel_selectors = read_selectors(target, properties)
        if explain is not None:
            _explain(explain)
        elif try_fixes:
            _try_fixes(cache, name, kernel_selectors, format)
        else:
            _list_findings(cache, name, kernel_selectors, nvdisasm, format, sass=sass, assemble=assemble)


def _list_findings(
    path: Path | None,
    name: str | None,
    targets: list[str],
    nvdisasm: Path | None,
    format: str,
    *,
    sass: bool,
    assemble: bool,
) -> None:
    from artifact_inspector.facts.selection import parse_filters, select_kernels
    from artifact_inspector.findings import find_findings
    from artifact_inspector.report.findings import FindingsReport

    cache = open_cache_or_fail(path)
    assembly = assemble_missing(select_kernels(cache, name, parse_filters(targets)), enabled=assemble)
    artifacts, cache = assembly.kernels, replace(cache, problems=(*cache.problems, *assembly.problems))
    disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
    kernels = list(inspect_kernels(artifacts, disassemble, lambda kernel: (find_findings(kernel), kernel.program)))
    if format == "text":
        print_report(FindingsReport(kernels, source_reader))
    else:
        _print_findings(cache, kernels, format)
    if kernels or cache.problems:
        exit_if_unreadable(kernels)
    assembly.exit_if_refused()


def _try_fixes(path: Path | None, name: str | None, targets: list[str], format: str) -> None:
    """Print what each kernel compiles to with the switches that its findings suggest."""
    from artifact_inspector.api.remedies import switches_of, try_switches
    from artifact_inspector.facts.selection import parse_filters, select_kernels
    from artifact_inspector.findings import find_findings
    from artifact_inspector.report.json.comparison import remedies_document
    from artifact_inspector.report.remedies import RemediesReport

    if format not in ("text", "json"):
        raise UsageError(f"--try prints text or JSON, not {format}.", "Remove --format.")
    artifacts = select_kernels(open_cache_or_fail(path), name, parse_filters(targets))
    kernels = list(inspect_kernels(artifacts, None, find_findings, index=False))
    with_fixes = [kernel for kernel in kernels if switches_of(kernel)]
    if len(with_fixes) > MAX_TRIED:
        raise UsageError(
            f"--try accepts at most {MAX_TRIED} kernels; {len(with_fixes)} match.",
            "Narrow by name or hash, --target or --where.",
        )
    untried = sum(len(find_findings(kernel)) for kernel in kernels)
    untried -= sum(len({finding for finding, _ in switches_of(kernel)}) for kernel in with_fixes)
    results = [(kernel, *try_switches(kernel)) for kernel in with_fixes]
    if format == "json":
        print_json(remedies_document(results, untried))
    else:
        print_report(RemediesReport(results, untried))


def _print_findings(cache: Cache, kernels: list[KernelFacts], format: str) -> None:
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.report.console import write
    from artifact_inspector.report.exchange.annotations import workflow_commands
    from artifact_inspector.report.exchange.sarif import sarif_document
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.cache import findings_document
    from artifact_inspector.report.remarks import finding_kinds, finding_remarks, merge_remarks

    encoding = sys.stdout.encoding
    remarks = finding_remarks(kernels, lambda file: find_source(file, Path.cwd()))
    if format == "json":
        text = as_text(findings_document(kernels, cache.problems), encoding)
    elif format == "sarif":
        text = as_text(sarif_document(finding_kinds(), remarks), encoding)
    else:
        text = workflow_commands(merge_remarks(remarks))
    write(text, sys.stdout, commands=format == "github")


def _explain(rule_name: str) -> None:
    from artifact_inspector.report.findings import RulePages, pick_rules

    print_report(RulePages(pick_rules(rule_name)))

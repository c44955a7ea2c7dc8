"""`inspect-kernel findings`: likely performance and correctness problems of each kernel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import AssembledCode, Selection
from artifact_inspector.cli._output import print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.files.cache import Cache

FORMATS = ("text", "json", "sarif", "github")
MAX_TRIED = 8
"""Kernels that `--try` accepts in one run."""


@command()
def findings(
    selection: Selection,
    code: AssembledCode,
    explain: str | None = options.option("--explain CODE", "Explain a finding: AI003, narrow-loads, all.", None),
    format: str = options.option("--format -f FORMAT", "Print as text, json, sarif or github.", "text"),
    try_fixes: bool = options.option(
        "--try", "Compile each kernel with the switches that findings suggest, and print what changed.", False
    ),
    scheduler: options.Scheduler = None,
    json: options.Json = False,
) -> None:
    """List likely performance and correctness problems of each kernel, or explain one."""
    format = "json" if json else format
    options.require_format(format, FORMATS)
    if explain is not None:
        from artifact_inspector.report.findings import RulePages, pick_rules

        print_report(RulePages(pick_rules(explain)))
    elif try_fixes:
        _try_fixes(selection, format)
    else:
        _list_findings(selection, code, format, scheduler)


def _list_findings(selection: Selection, code: AssembledCode, format: str, scheduler: str | None) -> None:
    from artifact_inspector.cli._loading import has_facts, open_selected, source_reader
    from artifact_inspector.report.findings import FindingsReport
    from artifact_inspector.vocabulary.selection import cost_of

    opened = open_selected(selection, code, assemble=code.assemble, scheduler=scheduler)
    kernels = list(opened.inspect(lambda kernel: (cost_of(kernel), kernel.program, has_facts(kernel)), packs=True))
    if format == "text":
        print_report(FindingsReport(kernels, source_reader, opened.cache.title))
    else:
        _print_findings(opened.cache, kernels, format)
    opened.exit_if_failed([has_facts(kernel) for kernel in kernels])


def _try_fixes(selection: Selection, format: str) -> None:
    """Print what each kernel compiles to with the switches that its findings suggest."""
    from artifact_inspector.api.remedies import switches_of, try_switches
    from artifact_inspector.cli._loading import open_selected
    from artifact_inspector.findings import find_findings
    from artifact_inspector.report.change_effect import RemediesReport
    from artifact_inspector.report.json.comparison import remedies_document

    if format not in ("text", "json"):
        raise UsageError(f"--try prints text or JSON, not {format}.", "Remove --format.")
    kernels = list(open_selected(selection).inspect(find_findings, index=False))
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
    from artifact_inspector.report.exchange.sarif import sarif_document, workflow_commands
    from artifact_inspector.report.json.cache import findings_document
    from artifact_inspector.report.remarks import finding_kinds, finding_remarks, merge_remarks

    remarks = finding_remarks(kernels, lambda file: find_source(file, Path.cwd()))
    if format == "github":
        write(workflow_commands(merge_remarks(remarks)), sys.stdout, commands=True)
        return
    is_json = format == "json"
    document = findings_document(kernels, cache.problems) if is_json else sarif_document(finding_kinds(), remarks)
    print_json(document)

"""`inspect-kernel findings`: what stands out in each kernel, and what that means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, KernelName, Nvdisasm, Sass, Targets
from artifact_inspector.cli._reading import disassembler, inspect_kernels, open_or_advise, refuse_unreadable


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
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """List what stands out in each kernel, or explain one finding."""
    with exit_codes(json=json):
        if explain is not None:
            _explain(explain)
        else:
            _list_findings(cache, name, target or [], nvdisasm, json=json, sass=sass)


def _list_findings(
    path: Path | None,
    name: str | None,
    targets: list[str],
    nvdisasm: Path | None,
    *,
    json: bool,
    sass: bool,
) -> None:
    from artifact_inspector.report.console import show, write
    from artifact_inspector.report.findings import FindingsReport
    from artifact_inspector.report.json import as_text, findings_document
    from artifact_inspector.report.selection import choose, parse_targets

    cache = open_or_advise(path)
    chosen = choose(cache, name, parse_targets(targets))
    disassemble = disassembler(chosen, nvdisasm) if sass or nvdisasm is not None else None
    kernels = inspect_kernels(cache, chosen, disassemble)
    if json:
        write(as_text(findings_document(kernels, cache.problems), sys.stdout.encoding), sys.stdout)
    else:
        show(FindingsReport(kernels), sys.stdout)
    if kernels or cache.problems:
        refuse_unreadable(kernels)


def _explain(word: str) -> None:
    from artifact_inspector.report.console import show
    from artifact_inspector.report.findings import RulePages, pick_rules

    show(RulePages(pick_rules(word)), sys.stdout)

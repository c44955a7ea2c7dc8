"""`inspect-kernel matrix`: one kernel on all its targets, in all its configurations."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, KernelName, Nvdisasm, Sass, Targets
from artifact_inspector.cli._reading import disassembler, inspect_kernels, open_or_advise, refuse_unreadable


@app.command()
def matrix(
    cache: CacheDirectory = None,
    name: KernelName = None,
    sort: Annotated[
        list[str] | None,
        typer.Option(
            "--sort",
            metavar="COLUMN",
            help="Sort by shared, registers, spills, wait, mma, flight, occupancy …; -shared: downwards.",
        ),
    ] = None,
    target: Targets = None,
    json: Json = False,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Show one kernel in every form that a cache has: targets, versions and configurations."""
    with exit_codes(json=json):
        from artifact_inspector.comparison.matrix import find_matrix
        from artifact_inspector.facts.selection import choose, parse_targets
        from artifact_inspector.model.text import split_words
        from artifact_inspector.report.console import show, write
        from artifact_inspector.report.json import as_text
        from artifact_inspector.report.json.comparison import matrix_document
        from artifact_inspector.report.matrix import MatrixReport
        from artifact_inspector.vocabulary.rows import summarise

        found = open_or_advise(cache)
        chosen = choose(found, name, parse_targets(target or []))
        disassemble = disassembler(chosen, nvdisasm, sass=sass)
        kernels = list(inspect_kernels(chosen, disassemble, summarise))
        forms = find_matrix(kernels, split_words(sort or []))
        if json:
            write(as_text(matrix_document(forms), sys.stdout.encoding), sys.stdout)
        else:
            show(MatrixReport(forms), sys.stdout)
        refuse_unreadable(kernels)

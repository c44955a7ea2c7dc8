"""`inspect-kernel baseline`: the facts of kernels as they are meant to stay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, KernelName, Nvdisasm, Sass, Targets
from artifact_inspector.cli._reading import disassembler, inspect_kernels, open_or_advise, refuse_unreadable
from artifact_inspector.cli._telling import say
from artifact_inspector.errors import UsageError


@app.command()
def baseline(
    cache: CacheDirectory = None,
    name: KernelName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The file to write; without it, standard output."),
    ] = None,
    target: Targets = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Record the facts of kernels, for `check` to hold a later cache against."""
    with exit_codes(json=False):
        from artifact_inspector.comparison.baseline import record
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.files.sources import find_source
        from artifact_inspector.files.writing import write_text
        from artifact_inspector.report.console import write
        from artifact_inspector.report.json.baseline import baseline_document, baseline_text
        from artifact_inspector.report.words import plural

        found = open_or_advise(cache)
        chosen = choose(found, name, parse_which(target or []))
        if not chosen:
            raise UsageError(f"There is no kernel in {found.root}.", "Name a Triton cache that has some.")
        disassemble = disassembler(chosen, nvdisasm, sass=sass)
        kernels = list(inspect_kernels(chosen, disassemble))
        refuse_unreadable(kernels)
        records = [record(kernel, lambda file: find_source(file, Path.cwd())) for kernel in kernels]
        text = baseline_text(baseline_document(records))
        if out is None:
            write(text, sys.stdout)
            return
        write_text(out, text)
        say(f"{len(kernels)} {plural('kernel', len(kernels))} recorded in {out}", sys.stdout)

"""`inspect-kernel baseline`: record the facts of kernels for `check`."""

from __future__ import annotations

import sys
from pathlib import Path

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import (
    CacheDirectory,
    KernelName,
    Nvdisasm,
    Output,
    Sass,
    Targets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._reading import disassembler, inspect_kernels, open_or_advise, refuse_unreadable
from artifact_inspector.cli._telling import say
from artifact_inspector.errors import UsageError


@app.command()
def baseline(
    cache: CacheDirectory = None,
    name: KernelName = None,
    out: Output = None,
    target: Targets = None,
    where: Where = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Record the facts of kernels in a file that `check` compares later caches with."""
    with exit_codes(json=False):
        from artifact_inspector.comparison.baseline import record
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.files.sources import find_source
        from artifact_inspector.files.writing import write_text
        from artifact_inspector.report.console import write
        from artifact_inspector.report.json.baseline import baseline_document, baseline_text
        from artifact_inspector.report.words import plural

        found = open_or_advise(cache)
        chosen = choose(found, name, parse_which(read_selectors(target, where)))
        if not chosen:
            raise UsageError(f"No kernels in {found.root}.", "Give a Triton cache with kernels.")
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

"""`inspect-kernel baseline`: record the facts of kernels for `check`."""

from __future__ import annotations

import sys
from pathlib import Path

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._loading import exit_if_unreadable, inspect_kernels, make_disassembler, open_cache_or_fail
from artifact_inspector.cli._options import (
    CacheDirectory,
    KernelName,
    Nvdisasm,
    Output,
    ReadTargets,
    Sass,
    Where,
    read_selectors,
)
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError


@app.command()
def baseline(
    cache: CacheDirectory = None,
    name: KernelName = None,
    output: Output = None,
    target: ReadTargets = None,
    properties: Where = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
) -> None:
    """Record the facts of kernels in a file that `check` compares later caches with."""
    with exit_codes(json=False):
        from artifact_inspector.comparison.baseline import record
        from artifact_inspector.facts.selection import parse_filters, select_kernels
        from artifact_inspector.files.sources import find_source
        from artifact_inspector.files.writer import write_text
        from artifact_inspector.report.console import write
        from artifact_inspector.report.json.baseline import baseline_document, baseline_text
        from artifact_inspector.report.phrases import plural

        opened = open_cache_or_fail(cache)
        artifacts = select_kernels(opened, name, parse_filters(read_selectors(target, properties)))
        if not artifacts:
            raise UsageError(f"No kernels in {opened.title}.", "Give a Triton cache with kernels.")
        disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
        kernels = list(inspect_kernels(artifacts, disassemble))
        exit_if_unreadable(kernels)
        records = [record(kernel, lambda file: find_source(file, Path.cwd())) for kernel in kernels]
        text = baseline_text(baseline_document(records))
        if output is None:
            write(text, sys.stdout)
            return
        write_text(output, text)
        write_line(f"{len(kernels)} {plural('kernel', len(kernels))} recorded in {output}", sys.stdout)

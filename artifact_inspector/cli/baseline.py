"""`inspect-kernel baseline`: record the facts of kernels for `check`."""

from __future__ import annotations

import sys
from pathlib import Path

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError


@command()
def baseline(selection: Selection, code: MachineCode, output: options.Output = None) -> None:
    """Record the facts of kernels in a file that `check` compares later caches with."""
    from artifact_inspector.cli._loading import cached_lookup, has_facts, open_selected
    from artifact_inspector.comparison.baseline import record, stored_digests
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.files.writer import write_text
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json.baseline import baseline_document, baseline_text
    from artifact_inspector.report.phrases import plural

    opened = open_selected(selection, code)
    if not opened.artifacts:
        raise UsageError(f"No kernels in {opened.cache.title}.", "Give a Triton cache with kernels.")
    kernels = list(opened.inspect())
    opened.exit_if_failed([has_facts(kernel) for kernel in kernels])
    with stored_digests(opened.artifacts, cached_lookup(None).index) as find_digests:
        records = [record(kernel, lambda file: find_source(file, Path.cwd()), find_digests) for kernel in kernels]
    text = baseline_text(baseline_document(records))
    if output is None:
        write(text, sys.stdout)
        return
    write_text(output, text)
    write_line(f"{len(kernels)} {plural('kernel', len(kernels))} recorded in {output}", sys.stdout)

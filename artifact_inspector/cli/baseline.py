"""`inspect-kernel baseline`: record the facts of kernels for `check`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import UsageError


@command()
def baseline(selection: Selection, code: MachineCode, output: options.Output = None) -> None:
    """Record the facts of kernels in a file that `check` compares later caches with."""
    from artifact_inspector.api.baseline_records import record_kernels
    from artifact_inspector.cli._loading import cached_lookup, has_facts, inspect_kernels, open_selected
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.files.writer import write_pieces
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json.baseline import baseline_text, record_order
    from artifact_inspector.report.phrases import plural

    opened = open_selected(selection, code)
    if not opened.artifacts:
        raise UsageError(f"No kernels in {opened.cache.title}.", "Give a Triton cache with kernels.")
    kernels_have_facts: list[bool] = []

    def texts() -> Iterator[str]:
        for is_known, text in record_kernels(
            sorted(opened.artifacts, key=record_order),
            lambda artifacts: inspect_kernels(artifacts, opened.disassemble),
            lambda file: find_source(file, Path.cwd()),
            None if opened.disassemble else cached_lookup(None).index,
            has_facts,
        ):
            kernels_have_facts.append(is_known)
            yield text
        opened.exit_if_failed(kernels_have_facts)  # which leaves the former file

    parts = baseline_text(texts())
    if output is None:
        write("".join(parts), sys.stdout)
        return
    write_pieces(output, (part.encode() for part in parts))
    count = len(kernels_have_facts)
    write_line(f"{count} {plural('kernel', count)} recorded in {output}", sys.stdout)

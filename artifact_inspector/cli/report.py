"""`inspect-kernel report`: an HTML page of a cache, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.errors import CacheError


@command()
def report(
    selection: Selection,
    code: MachineCode,
    output: Annotated[Path, options.option("--output -o FILE", "Write the page to FILE.")] = Path("report.html"),
    no_index: options.NoIndex = False,
) -> None:
    """Write an HTML page: a table of kernels, and the pictures and linked code of each."""
    from artifact_inspector.cli._loading import exit_if_unreadable, make_disassembler, open_selected
    from artifact_inspector.cli._pages import view_kernels, write_page
    from artifact_inspector.report.html import cache_page

    opened, artifacts = open_selected(selection)
    if not artifacts:
        raise CacheError(f"No kernels in {opened.title}.", "Give a Triton cache with kernels.")
    disassemble = make_disassembler(artifacts, code.nvdisasm, sass=code.sass)
    kernels, views = view_kernels(artifacts, disassemble, index=not no_index)
    write_page(output, cache_page(opened, kernels, views))
    exit_if_unreadable(kernels)

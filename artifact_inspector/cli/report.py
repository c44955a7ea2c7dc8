"""`inspect-kernel report`: an HTML page of a cache, in one file."""

from __future__ import annotations

from pathlib import Path

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._groups import MachineCode, Selection
from artifact_inspector.errors import CacheError


@command()
def report(
    selection: Selection,
    code: MachineCode,
    output: Path = options.option("--output -o FILE", "Write the page to FILE.", Path("report.html")),
    no_index: options.NoIndex = False,
    sources: options.SourceDirectory = None,
) -> None:
    """Write an HTML page: a table of kernels, and the pictures and linked code of each."""
    from artifact_inspector.cli._loading import has_facts, open_selected
    from artifact_inspector.cli._pages import view_kernels, write_page
    from artifact_inspector.report.html import cache_page

    opened = open_selected(selection, code)
    if not opened.artifacts:
        raise CacheError(f"No kernels in {opened.cache.title}.", "Give a Triton cache with kernels.")
    kernels, views = view_kernels(opened, index=not no_index, directory=sources)
    write_page(output, cache_page(opened.cache, kernels, views))
    opened.exit_if_failed([has_facts(kernel) for kernel in kernels])

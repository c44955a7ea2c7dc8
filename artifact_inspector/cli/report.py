"""`inspect-kernel report`: an HTML page of a cache, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._loading import exit_if_unreadable, make_disassembler, open_cache_or_fail
from artifact_inspector.cli._options import (
    CacheDirectory,
    KernelName,
    NoIndex,
    Nvdisasm,
    ReadTargets,
    Sass,
    Where,
    read_selectors,
)
from artifact_inspector.cli._pages import view_kernels, write_page
from artifact_inspector.errors import CacheError


@app.command()
def report(
    cache: CacheDirectory = None,
    name: KernelName = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Write the page to FILE.")] = Path(
        "report.html"
    ),
    target: ReadTargets = None,
    properties: Where = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
    no_index: NoIndex = False,
) -> None:
    """Write an HTML page: a table of kernels, and the pictures and linked code of each."""
    with exit_codes(json=False):
        from artifact_inspector.facts.selection import parse_filters, select_kernels
        from artifact_inspector.report.html import cache_page

        opened = open_cache_or_fail(cache)
        artifacts = select_kernels(opened, name, parse_filters(read_selectors(target, properties)))
        if not artifacts:
            raise CacheError(f"No kernels in {opened.title}.", "Give a Triton cache with kernels.")
        disassemble = make_disassembler(artifacts, nvdisasm, sass=sass)
        kernels, views = view_kernels(artifacts, disassemble, index=not no_index)
        write_page(output, cache_page(opened, kernels, views))
        exit_if_unreadable(kernels)

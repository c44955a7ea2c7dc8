"""`inspect-kernel report`: an HTML page of a cache, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import (
    CacheDirectory,
    KernelName,
    NoIndex,
    Nvdisasm,
    Sass,
    Targets,
    Where,
    read_selectors,
)
from artifact_inspector.cli._pages import view_kernels, write_page
from artifact_inspector.cli._reading import disassembler, open_or_advise, refuse_unreadable
from artifact_inspector.errors import CacheError


@app.command()
def report(
    cache: CacheDirectory = None,
    name: KernelName = None,
    out: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Write the page to FILE.")
    ] = Path("report.html"),
    target: Targets = None,
    where: Where = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
    no_index: NoIndex = False,
) -> None:
    """Write an HTML page: a table of kernels, and the pictures and linked code of each."""
    with exit_codes(json=False):
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.report.html import cache_page

        found = open_or_advise(cache)
        chosen = choose(found, name, parse_which(read_selectors(target, where)))
        if not chosen:
            raise CacheError(f"No kernels in {found.root}.", "Give a Triton cache with kernels.")
        disassemble = disassembler(chosen, nvdisasm, sass=sass)
        kernels, views = view_kernels(chosen, disassemble, index=not no_index)
        write_page(out, cache_page(found, kernels, views))
        refuse_unreadable(kernels)

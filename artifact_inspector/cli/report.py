"""`inspect-kernel report`: a page to look at, in one file that opens from the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, KernelName, NoIndex, Nvdisasm, Sass, Targets
from artifact_inspector.cli._pages import view_kernels, write_page
from artifact_inspector.cli._reading import disassembler, open_or_advise, refuse_unreadable
from artifact_inspector.errors import CacheError


@app.command()
def report(
    cache: CacheDirectory = None,
    name: KernelName = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    target: Targets = None,
    sass: Sass = False,
    nvdisasm: Nvdisasm = None,
    no_index: NoIndex = False,
) -> None:
    """Write a page to look at: a table of kernels, and each with its pictures and linked code."""
    with exit_codes(json=False):
        from artifact_inspector.facts.selection import choose, parse_which
        from artifact_inspector.report.html import cache_page

        found = open_or_advise(cache)
        chosen = choose(found, name, parse_which(target or []))
        if not chosen:
            raise CacheError(f"There is no kernel in {found.root}.", "Name a Triton cache with some.")
        disassemble = disassembler(chosen, nvdisasm, sass=sass)
        kernels, views = view_kernels(chosen, disassemble, index=not no_index)
        write_page(out, cache_page(found, kernels, views))
        refuse_unreadable(kernels)

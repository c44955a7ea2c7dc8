"""`inspect-kernel lsp`: what became of a kernel's lines, in an editor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli.mcp import require_extra


@app.command()
def lsp(
    cache: Annotated[
        list[Path] | None,
        typer.Option(
            "--cache",
            metavar="DIR",
            help="Where compiled kernels are looked for; Triton's cache and triton-cache by default.",
        ),
    ] = None,
    compile_on_save: Annotated[
        bool,
        typer.Option(
            "--compile-on-save",
            metavar="",
            help="Compile a file's kernels when it is saved, with no GPU: imports the file.",
        ),
    ] = False,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "-t", metavar="GPU", help="For which they are compiled: sm_90,gfx942 …"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where they are compiled to; a cache of our own."),
    ] = None,
) -> None:
    """Serve editors by the Language Server Protocol, on standard input and output."""
    with exit_codes(json=False):
        require_extra("pygls", "lsp")
        from artifact_inspector.cli._options import OUT
        from artifact_inspector.compiling.ask.environments import cache_directory
        from artifact_inspector.facts.selection import parse_targets
        from artifact_inspector.files.cache import default_directory
        from artifact_inspector.serving.known import Knowledge
        from artifact_inspector.serving.lsp import serve

        caches = cache or [default_directory(), OUT]
        targets = [str(one) for one in parse_targets(target or [])]
        knowledge = Knowledge([path.expanduser().absolute() for path in caches], targets, out)
        serve(knowledge, compiles=compile_on_save, pages=cache_directory() / "findings")

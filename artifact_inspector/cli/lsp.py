"""`inspect-kernel lsp`: show in an editor what each line of a kernel compiled to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import DEFAULT_OUTPUT, CompileTargets, Keep
from artifact_inspector.cli.mcp import require_extra


@app.command()
def lsp(
    cache: Annotated[
        list[Path] | None,
        typer.Option(
            "--cache", metavar="DIR", help="Look for compiled kernels in DIR. Default: Triton's cache and triton-cache."
        ),
    ] = None,
    compile_on_save: Annotated[
        bool,
        typer.Option(
            "--compile-on-save",
            metavar="",
            help="Compile the kernels of a file when it is saved. This imports the file.",
        ),
    ] = False,
    target: CompileTargets = None,
    keep: Keep = None,
) -> None:
    """Serve editors through the Language Server Protocol on standard input and output."""
    with exit_codes(json=False):
        require_extra("pygls", "lsp")
        from artifact_inspector.compiling.ask.environments import cache_directory
        from artifact_inspector.facts.selection import parse_targets
        from artifact_inspector.files.cache import default_directory
        from artifact_inspector.serving.kernel_variants import KernelVariants
        from artifact_inspector.serving.lsp import serve

        caches = cache or [default_directory(), DEFAULT_OUTPUT]
        targets = [str(parsed_target) for parsed_target in parse_targets(target or [])]
        variants = KernelVariants([path.expanduser().absolute() for path in caches], targets, keep)
        serve(variants, compiles=compile_on_save, pages=cache_directory() / "findings")

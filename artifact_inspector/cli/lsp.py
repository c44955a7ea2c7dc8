"""`inspect-kernel lsp`: show in an editor what each line of a kernel compiled to."""

from __future__ import annotations

from pathlib import Path

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli.mcp import require_extra


@command()
def lsp(
    cache: list[Path] | None = options.option(
        "--cache DIR", "Look for compiled kernels in DIR. Default: Triton's cache and triton-cache.", None
    ),
    compile_on_save: bool = options.option(
        "--compile-on-save", "Compile the kernels of a file when it is saved. This imports the file.", False
    ),
    target: options.CompileTargets = None,
    keep: options.Keep = None,
) -> None:
    """Serve editors through the Language Server Protocol on standard input and output."""
    require_extra("pygls", "lsp")
    from artifact_inspector.cli._requests import target_names
    from artifact_inspector.compiling.ask.environments import cache_directory
    from artifact_inspector.files.cache import default_directory
    from artifact_inspector.serving.kernel_variants import KernelVariants
    from artifact_inspector.serving.lsp import serve

    caches = cache or [default_directory(), options.DEFAULT_OUTPUT]
    variants = KernelVariants([path.expanduser().absolute() for path in caches], target_names(target), keep)
    serve(variants, compiles=compile_on_save, pages=cache_directory() / "findings")

"""From a path to the facts of its kernels, with progress on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from artifact_inspector.cli._exit import UNREADABLE
from artifact_inspector.errors import CacheError

if TYPE_CHECKING:
    from artifact_inspector.facts.inspection import View
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact, Cache

__all__ = ["disassembler", "inspect_kernels", "open_or_advise", "refuse_unreadable"]


def open_or_advise(path: Path | None) -> Cache:
    """The cache at a path, or Triton's own; an error says how to come by one."""
    from artifact_inspector.files.cache import open_cache, open_file

    try:
        return open_cache(path) if path is None or not path.is_file() else open_file(path)
    except CacheError as error:
        if path is not None:
            raise
        remedy = "Run a Triton kernel first, name a cache directory, or try `inspect-kernel demo`."
        raise CacheError(error.message, remedy) from None


def disassembler(chosen: Sequence[Artifact], path: Path | None, *, sass: bool) -> Disassemble | None:
    """What makes text of a binary; without a tool it says, for each binary, that there is none.

    Args:
        path: of nvdisasm; naming one asks for machine code too.
        sass: whether machine code is asked for; None is the answer where it is not.
    """
    if not sass and path is None:
        return None
    from artifact_inspector.files.disassembly import disassemble, find_disassembler, keep_all
    from artifact_inspector.files.objdump import disassemble_hsaco, find_objdump
    from artifact_inspector.report.progress import progress_bar

    tool = find_disassembler(path)
    cubins = [file for artifact in chosen if isinstance(file := artifact.files.get("cubin"), Path)]
    if tool is not None and len(cubins) > 1:
        with progress_bar(len(cubins), "disassembling") as advance:
            keep_all(cubins, tool, progress=lambda cubin: advance(cubin.stem))
    objdump = find_objdump()
    return lambda suffix, binary: (
        disassemble(binary, tool) if suffix == "cubin" else disassemble_hsaco(binary, objdump)
    )


def inspect_kernels(
    cache: Cache,
    chosen: tuple[Artifact, ...],
    disassemble: Disassemble | None,
    view: View | None = None,
) -> list[KernelFacts]:
    """The facts of the chosen kernels: those that a view asks for, all by default."""
    from artifact_inspector.facts.inspection import inspect_cache
    from artifact_inspector.report.progress import progress_bar

    with progress_bar(len(chosen), "reading") as advance:
        return list(
            inspect_cache(
                cache,
                chosen,
                progress=lambda artifact: advance(artifact.display_name),
                disassemble=disassemble,
                view=view,
            )
        )


def refuse_unreadable(kernels: list[KernelFacts]) -> None:
    """End with the exit code of unreadable input where nothing is known of any kernel."""
    if not any(k.stages or k.artifact.metadata or k.resources.registers.value for k in kernels):
        raise typer.Exit(UNREADABLE)

"""From a path to the facts of its kernels, with progress on the way."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._exit import UNREADABLE
from artifact_inspector.cli._telling import say
from artifact_inspector.errors import CacheError

if TYPE_CHECKING:
    from artifact_inspector.facts.fact_index import ReadOptions
    from artifact_inspector.facts.kernel import KernelFacts, View
    from artifact_inspector.facts.modules import Disassemble
    from artifact_inspector.files.cache import Artifact, Cache
    from artifact_inspector.files.sources import Quote
    from artifact_inspector.files.tuning import Timed


def open_or_advise(path: Path | None) -> Cache:
    """The cache at a path, or Triton's own; an error says how to come by one."""
    from artifact_inspector.files.cache import open_cache, open_file

    try:
        is_file = path is not None and os.path.isfile(path)  # noqa: PTH113 - a name of any length
        return open_file(path) if path is not None and is_file else open_cache(path)
    except CacheError as error:
        if path is not None and path.suffix == ".py":
            remedy = (
                f"Compile its kernel first: `inspect-kernel compile {path}:KERNEL -o DIR`, then name DIR."
            )
            raise CacheError(error.message, remedy) from None
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
    from artifact_inspector.files.disassembly import find_disassembler, keep_all
    from artifact_inspector.files.objdump import disassembling
    from artifact_inspector.report.progress import progress_bar

    tool = find_disassembler(path)
    cubins = [file for artifact in chosen if isinstance(file := artifact.files.get("cubin"), Path)]
    if tool is not None and len(cubins) > 1:
        with progress_bar(len(cubins), "disassembling") as advance:
            keep_all(cubins, tool, progress=lambda cubin: advance(cubin.stem))
    return disassembling(tool)


def assembled(chosen: Sequence[Artifact], *, wanted: bool) -> tuple[Artifact, ...]:
    """The kernels, those with PTX and no cubin with one that ptxas makes, where that is wanted."""
    if not wanted:
        return tuple(chosen)
    from artifact_inspector.files.assembly import with_cubin

    found, refused = [], Counter[str]()
    for artifact in chosen:
        try:
            found.append(with_cubin(artifact))
        except CacheError as error:
            refused[error.message] += 1
            found.append(artifact)
    for said, count in refused.items():
        say(f"{count} of {len(chosen)} kernels: {said}", sys.stderr)
    return tuple(found)


def inspect_kernels(
    chosen: Sequence[Artifact],
    disassemble: Disassemble | None,
    view: View | None = None,
    *,
    index: bool = True,
) -> Iterator[KernelFacts]:
    """The facts of the chosen kernels, one after the other: those that a view asks for, all by default.

    Args:
        index: look them up where they were found before, and keep those that were not.
    """
    from artifact_inspector.facts.fact_index import read_kernels
    from artifact_inspector.facts.reading import without_collection
    from artifact_inspector.report.progress import progress_bar

    with progress_bar(len(chosen), "reading") as advance, without_collection():
        how = recalling(disassemble, lambda artifact: advance(artifact.display_name), index=index)
        yield from read_kernels(chosen, view, how)
        gc.freeze()  # or the collector would now go through all that was found


def inspect_one(disassemble: Disassemble | None) -> Callable[[Artifact], KernelFacts]:
    """What finds all facts of a kernel, or looks them up where they were found before."""
    from artifact_inspector.facts.fact_index import read_kernels

    how = recalling(disassemble)

    def inspect(artifact: Artifact) -> KernelFacts:
        (kernel,) = read_kernels((artifact,), None, how)
        return kernel

    return inspect


def recalling(
    disassemble: Disassemble | None,
    progress: Callable[[Artifact], None] | None = None,
    *,
    index: bool = True,
) -> ReadOptions:
    """How kernels are recalled; what is amiss with the index is told once."""
    from artifact_inspector.facts.fact_index import ReadOptions
    from artifact_inspector.files.index import opener

    said: set[str] = set()

    def notice(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            say(sentence, sys.stderr)

    return ReadOptions(disassemble, opener(notice) if index else None, progress=progress)


def timings_of(cache: Cache) -> Callable[[KernelFacts], tuple[Timed, ...]]:
    """What Triton's own autotuner timed of a kernel of this cache."""
    from artifact_inspector.files.tuning import read_tunings, timed

    tunings = read_tunings(cache)

    def told(kernel: KernelFacts) -> tuple[Timed, ...]:
        if not tunings:
            return ()
        return timed(tunings, cache, kernel.artifact, () if kernel.program is None else kernel.program.tiles)

    return told


def quotes_of(kernel: KernelFacts) -> Quote:
    """Reads lines of a kernel's source, as it lies in this directory."""
    from artifact_inspector.files.sources import quoting

    place = None if kernel.program is None else kernel.program.place
    return quoting(place, kernel.artifact.display_name, Path.cwd())


def is_known(kernel: KernelFacts) -> bool:
    """Whether anything is known of a kernel."""
    return bool(kernel.stages or kernel.artifact.metadata or kernel.resources.registers.value)


def refuse_unreadable(kernels: Iterable[KernelFacts]) -> None:
    """End with the exit code of unreadable input where nothing is known of any kernel."""
    refuse_unknown(map(is_known, kernels))


def refuse_unknown(known: Iterable[bool]) -> None:
    """The same, of kernels of which it is told whether anything is known."""
    if not any(known):
        raise SystemExit(UNREADABLE)

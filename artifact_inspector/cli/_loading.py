"""From a path to the facts of its kernels, with progress."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._exit import DIFFERENT, UNREADABLE
from artifact_inspector.cli._groups import ListOptions, MachineCode, Selection
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.kernel import KernelFacts, View
from artifact_inspector.facts.reading import TextCache, without_collection
from artifact_inspector.facts.selection import KernelFilter, parse_filters, parse_stages, select_kernels
from artifact_inspector.files.artifact import LINKED_DIRECTORY, Problem
from artifact_inspector.files.autotuning import AutotuneResult, EntryTiming, entry_timings
from artifact_inspector.files.cache import Artifact, Cache, open_cache, open_location
from artifact_inspector.files.index import index_opener
from artifact_inspector.files.sources import SourceLineReader, source_line_reader
from artifact_inspector.model import Stage
from artifact_inspector.model.text import split_option_values
from artifact_inspector.report.progress import progress_bar

if TYPE_CHECKING:
    from artifact_inspector.facts.modules import Disassemble

MAX_NAMES = 6
"""Kernels that an error lists."""


def read_filters(targets: Sequence[str] | None, properties: Sequence[str] | None) -> tuple[KernelFilter, ...]:
    """What `--target` and `--where` select by.

    `--target` once took properties too; those still work and are reported on standard error.
    """
    names = split_option_values(targets or [])
    for name in names:
        if not all(selector.is_target for selector in parse_filters([name])):
            write_line(f"inspect-kernel: --target {name} is now --where {name}.", sys.stderr)
    return parse_filters([*names, *(properties or [])])


@dataclass(frozen=True)
class OpenedKernels:
    """The selected kernels of a cache, and how they are read."""

    cache: Cache
    """With the kernels that ptxas rejected among its problems."""
    artifacts: tuple[Artifact, ...]
    disassemble: Disassemble | None
    is_refused: bool = False
    """Whether ptxas rejected a kernel."""
    scheduler: str | None = None
    """The Dask scheduler whose workers read the kernels."""
    shows_progress: bool = True

    def inspect(self, view: View | None = None, *, index: bool = True, packs: bool = False) -> Iterator[KernelFacts]:
        """The facts of the kernels; the arguments are those of `inspect_kernels`."""
        return inspect_kernels(
            self.artifacts, self.disassemble, view, index=index, scheduler=self.scheduler, packs=packs,
            shows_progress=self.shows_progress,
        )  # fmt: skip

    def exit_if_failed(self, kernels_have_facts: Sequence[bool]) -> None:
        """Exit with the code of unreadable input if nothing could be read, of a failed compile if ptxas failed.

        Args:
            kernels_have_facts: for each kernel, whether anything about it could be read.
        """
        if (kernels_have_facts or self.cache.problems) and not any(kernels_have_facts):
            raise SystemExit(UNREADABLE)
        if self.is_refused:
            raise SystemExit(DIFFERENT)


def open_selected(
    selection: Selection,
    code: MachineCode | None = None,
    stages: Sequence[Stage] = (),
    *,
    assemble: bool = False,
    scheduler: str | None = None,
) -> OpenedKernels:
    """The selected kernels.

    Args:
        assemble: ptxas assembles a cubin for kernels with PTX and no cubin.

    Raises:
        UsageError: the cache has kernels, but none is selected.
    """
    filters = read_filters(selection.target, selection.properties)
    cache = open_cache_or_fail(selection.cache)
    is_disassembled = code is not None and code.sass and Stage.SASS in stages
    artifacts = select_kernels(cache, selection.name, filters, () if is_disassembled else stages)
    problems: list[Problem] = []
    if assemble:
        artifacts, problems = _assemble_missing(artifacts)
        cache = replace(cache, problems=(*cache.problems, *problems))
    disassemble = None if code is None else make_disassembler(artifacts, code.nvdisasm, sass=code.sass)
    return OpenedKernels(cache, artifacts, disassemble, bool(problems), scheduler)


def open_cache_or_fail(path: Path | None, *, can_be_empty: bool = False) -> Cache:
    """The cache at a path, or Triton's own.

    Args:
        can_be_empty: accept a directory without kernels.

    Raises:
        CacheError: there is no cache or no kernel in it; the remedy says how to get one.
    """
    try:
        cache = open_cache() if path is None else open_location(path)
    except CacheError as error:
        if path is not None and path.suffix == ".py":
            remedy = f"Compile its kernel first: `inspect-kernel compile {path}:KERNEL -o DIR`, then give DIR."
            raise CacheError(error.message, remedy) from None
        if path is not None:
            raise
        remedy = "Run a Triton kernel first, give a cache directory, or try `inspect-kernel demo`."
        raise CacheError(error.message, remedy) from None
    if cache.missing:
        first, more = cache.missing[0], len(cache.missing) - 1
        further = f" ({more} more)" if more else ""
        location = "" if first.path == "." else f"{first.path}: "
        write_line(f"{cache.title} is incomplete: {location}{first.problem}{further}.", sys.stderr)
    if not (cache.entries or cache.problems or can_be_empty):
        links = [other_file.path for other_file in cache.others if other_file.kind == LINKED_DIRECTORY]
        followed = f" Links to directories are not followed: {', '.join(links[:5])}." if links else ""
        kinds = Counter(other_file.kind for other_file in cache.others).most_common(5)
        has = f"has {', '.join(f'{count} × {kind}' for kind, count in kinds)}" if kinds else "is empty"
        raise CacheError(
            f"No kernels in {cache.title}. It {has}.{followed}",
            "A Triton cache has one directory per kernel, with files like NAME.json, NAME.ttir, NAME.ptx.\n"
            "Triton writes to ~/.triton/cache or TRITON_CACHE_DIR. `inspect-kernel demo` makes an example.",
        )
    return cache


def require_one(artifacts: Sequence[Artifact], subject: str) -> Artifact:
    """The only kernel.

    Args:
        subject: subject and verb of the error: `--svg draws`.

    Raises:
        UsageError: there are several; the remedy lists them.
    """
    if len(artifacts) != 1:
        names = ", ".join(f"{entry.display_name} {entry.hash[:8]} {entry.target}" for entry in artifacts[:MAX_NAMES])
        omitted = f" and {len(artifacts) - MAX_NAMES} more" if len(artifacts) > MAX_NAMES else ""
        raise UsageError(
            f"{subject} one kernel; {len(artifacts)} match.",
            f"Narrow by name or hash, --target or --where. Matches: {names}{omitted}.",
        )
    return artifacts[0]


def open_one(
    selection: Selection, code: MachineCode, view: ListOptions, subject: str
) -> tuple[Artifact, Disassemble | None, tuple[Stage, ...]]:
    """The only kernel, its disassembler, and the stages to show."""
    stages = parse_stages(view.stage or [])
    opened = open_selected(selection, code)
    return require_one(opened.artifacts, subject), opened.disassemble, stages


def make_disassembler(artifacts: Sequence[Artifact], path: Path | None, *, sass: bool) -> Disassemble | None:
    """A function that disassembles a binary; None if no machine code is requested.

    Without a tool, the function reports a missing tool for each binary.

    Args:
        path: of nvdisasm; a path requests machine code too.
        sass: whether machine code is requested.
    """
    if not sass and path is None:
        return None
    # a list without machine code imports no tool
    from artifact_inspector.files.disassembly import disassemble_all, find_disassembler
    from artifact_inspector.files.objdump import binary_disassembler

    tool = find_disassembler(path)
    cubins = [file for artifact in artifacts if isinstance(file := artifact.files.get("cubin"), Path)]
    if tool is not None and len(cubins) > 1:
        with progress_bar(len(cubins), "disassembling") as advance:
            disassemble_all(cubins, tool, progress=lambda cubin: advance(cubin.stem))
    return binary_disassembler(tool)


def _assemble_missing(artifacts: Sequence[Artifact]) -> tuple[tuple[Artifact, ...], list[Problem]]:
    """The kernels, those with PTX and no cubin with a cubin; and those that ptxas rejected."""
    from artifact_inspector.files.assembly import with_cubin  # a list assembles nothing

    results, problems = [], []
    for artifact in artifacts:
        try:
            results.append(with_cubin(artifact))
        except CacheError as error:
            problems.append(Problem(artifact.display_path("ptx"), error.message))
            results.append(artifact)
    for message, count in Counter(problem.problem for problem in problems).items():
        write_line(f"{count} of {len(artifacts)} kernels: {message}", sys.stderr)
    return tuple(results), problems


def inspect_kernels(
    artifacts: Sequence[Artifact],
    disassemble: Disassemble | None,
    view: View | None = None,
    *,
    index: bool = True,
    scheduler: str | None = None,
    packs: bool = False,
    shows_progress: bool = True,
) -> Iterator[KernelFacts]:
    """The facts of the chosen kernels, one after the other: those that a view requests, all by default.

    Args:
        index: read facts from the result cache, and store new ones there.
        scheduler: of Dask, whose workers read what the result cache lacks.
        packs: keep the facts of a kernel compressed after its view.
    """
    bar = progress_bar(len(artifacts), "reading") if shows_progress else nullcontext(lambda _name: None)
    with bar as advance, without_collection():
        lookup = cached_lookup(disassemble, lambda artifact: advance(artifact.display_name), index=index)
        yield from read_kernels(artifacts, view, replace(lookup, scheduler=scheduler, packs=packs))
        gc.freeze()  # keep the collector from scanning every fact


def make_inspector(disassemble: Disassemble | None, view: View | None = None) -> Callable[[Artifact], KernelFacts]:
    """A function that returns a kernel's facts, from the result cache if they are there; it keeps those of the view."""
    lookup = replace(cached_lookup(disassemble), texts=TextCache())

    def inspect(artifact: Artifact) -> KernelFacts:
        (kernel,) = read_kernels((artifact,), view, lookup)
        return kernel

    return inspect


def cached_lookup(
    disassemble: Disassemble | None, progress: Callable[[Artifact], None] | None = None, *, index: bool = True
) -> ReadOptions:
    """How kernels are looked up in the result cache; each problem with it is reported once."""
    reported: set[str] = set()

    def notice(sentence: str) -> None:
        if sentence not in reported:
            reported.add(sentence)
            write_line(sentence, sys.stderr)

    return ReadOptions(disassemble, index_opener(notice) if index else None, progress=progress)


def make_timing_reader(
    cache: Cache, tunings: Sequence[AutotuneResult]
) -> Callable[[KernelFacts], tuple[EntryTiming, ...]]:
    """A function that returns the times that Triton's autotuner stored for a kernel of this cache."""

    def read_timings(kernel: KernelFacts) -> tuple[EntryTiming, ...]:
        if not tunings:
            return ()
        return entry_timings(tunings, cache, kernel.artifact, () if kernel.program is None else kernel.program.tiles)

    return read_timings


def source_reader(kernel: KernelFacts) -> SourceLineReader:
    """A reader of the source lines of a kernel, from files below the working directory."""
    frame = None if kernel.program is None else kernel.program.location
    return source_line_reader(frame, kernel.artifact.display_name, Path.cwd(), kernel.artifact)


def has_facts(kernel: KernelFacts) -> bool:
    """Whether anything about a kernel could be read."""
    return kernel.derive(
        "has_facts", lambda: bool(kernel.stages or kernel.artifact.metadata or kernel.resources.registers.value)
    )

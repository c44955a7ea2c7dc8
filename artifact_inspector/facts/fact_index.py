"""Kernels whose facts are read from the index, or computed on all cores.

The index keeps the facts of a kernel under a digest of this package and of all files of the kernel. Each fact
is read on its own. One that is not there is computed from the files, and kept with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from artifact_inspector.facts.kernel import KernelFacts, View, read_everything
from artifact_inspector.facts.lazy import FactSource
from artifact_inspector.facts.reading import TextCache, without_collection
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.digests import index_key, snapshot_files
from artifact_inspector.files.index import Index, pack, unpack

if TYPE_CHECKING:
    from artifact_inspector.facts.modules import Disassemble

FIRST_BATCH = 64
"""Kernels that are hashed together at first; each further batch has four times as many."""
KERNELS_PER_READ = 256
"""Kernels whose facts are read from the index together."""
KERNELS_PER_WRITE = 64
"""Kernels whose facts are written to the index together."""


@dataclass(frozen=True)
class ReadOptions:
    """How kernels are read."""

    disassemble: Disassemble | None = None
    """Makes machine code a stage. Facts of it are not kept: no file holds their text."""
    index: Callable[[], Index] | None = None
    """Opens the index; None to do without one."""
    cores: int | None = None
    """Processes at most; by default as many as this one may run on."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers read instead of processes here."""
    sends_files: bool = False
    """Whether the workers get the files too; else they open them under the same paths."""
    packs: bool = False
    """Whether a kernel keeps its facts compressed after its view: for thousands of kernels of which a row is shown."""
    progress: Callable[[Artifact], None] | None = None
    """Called with each kernel before it is read."""
    texts: TextCache | None = None
    """What first stages prove, shared by several calls; None to share within one call."""


def read_kernels(
    artifacts: Sequence[Artifact], view: View | None, options: ReadOptions | None = None
) -> Iterator[KernelFacts]:
    """The facts of some kernels, in their order, each as soon as it is available.

    Args:
        view: reads what is to be computed; everything by default.
    """
    options = options or ReadOptions()
    options = replace(options, texts=options.texts or TextCache())
    keeps = options.index is not None and options.disassemble is None
    for batch in batches(artifacts) if keeps else [artifacts]:
        yield from _read_batch(batch, view or read_everything, options, keeps=keeps)


def batches(artifacts: Sequence[Artifact]) -> Iterator[Sequence[Artifact]]:
    """Kernels whose files are hashed before the first of them is read, so that the first of thousands comes soon."""
    start, count = 0, FIRST_BATCH
    while start < len(artifacts):
        yield artifacts[start : start + count]
        start, count = start + count, 4 * count


def _read_batch(
    artifacts: Sequence[Artifact], view: View, options: ReadOptions, *, keeps: bool
) -> Iterator[KernelFacts]:
    states = [snapshot_files(artifact) if keeps else None for artifact in artifacts]
    keys = [None if state is None else index_key(state.digest) for state in states]
    stored: Collection[bytes] = ()
    if options.index is not None and keeps:
        with options.index() as index:
            stored = index.find(key for key in keys if key is not None)
    first_of = {key or at: at for at, key in reversed([*enumerate(keys)]) if key not in stored}
    missing = sorted(first_of.values())
    are_missing = frozenset(missing)
    repeats = {key for at, key in enumerate(keys) if key not in stored and at not in are_missing}
    packed_facts, repeated, fresh = dict[bytes, bytes](), dict[bytes, bytes](), dict[bytes, bytes]()
    for at, computed in _in_order(artifacts, missing, view, options):
        artifact, key, state = artifacts[at], keys[at], states[at]
        if options.index is not None and key in stored and key not in packed_facts:
            # a few at a time, so that memory does not grow with the kernels of a stream
            packed_facts.clear()
            with options.index() as index:
                packed_facts |= index.get_packed(x for x in keys[at : at + KERNELS_PER_READ] if x and x in stored)
        packed = b"" if key is None else packed_facts.get(key) or repeated.get(key, b"")
        text = computed or (unpack(packed) if packed else None) or b""
        is_viewed = at in are_missing and text and not options.packs  # by another process
        kernel, source = _inspect(artifact, text, None if is_viewed else view, options)
        if source.is_changed or at in are_missing:
            packed = b""
            # A program that writes to the cache meanwhile may have changed what was read.
            if state is not None and key is not None and state.is_current(artifact):
                packed = fresh[key] = pack(source.text())
                if key in repeats:
                    repeated[key] = packed
        if len(fresh) >= KERNELS_PER_WRITE:
            _write(fresh, options)
        if options.packs:
            kernel.pack(packed, keep=("program",))
        yield kernel
    _write(fresh, options)


def _inspect(
    artifact: Artifact, text: bytes, view: View | None, options: ReadOptions
) -> tuple[KernelFacts, FactSource]:
    """A kernel and its source: the stored facts if they can be shown, else its files."""
    source = FactSource(artifact, text, options.disassemble, options.texts)
    kernel = KernelFacts.on_demand(source, artifact=artifact)
    if view is None:
        return kernel, source
    try:
        with without_collection():
            view(kernel)
            source.let_go()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        if not text:
            raise
        return _inspect(artifact, b"", view, options)  # facts of their type that no kernel can have
    return kernel, source


def _in_order(
    artifacts: Sequence[Artifact], missing: Sequence[int], view: View, options: ReadOptions
) -> Iterator[tuple[int, bytes]]:
    """The facts of each missing kernel that other processes computed; empty for the others."""
    computed: Iterator[tuple[int, bytes]] = iter(())
    if missing:
        # which import every parser
        from artifact_inspector.facts.workers import find_cluster_facts, find_facts, with_absolute_paths, with_contents

        if options.scheduler is None:
            computed = find_facts(artifacts, missing, view, options.disassemble, options.cores)
        else:
            prepare = with_contents if options.sends_files else with_absolute_paths
            jobs = [artifacts[index] for index in missing]
            computed = find_cluster_facts(map(prepare, jobs), missing, view, options.disassemble, options.scheduler)
    waiting, texts = set(missing), dict[int, bytes]()
    for index, artifact in enumerate(artifacts):
        if options.progress is not None:
            options.progress(artifact)
        while index in waiting:
            fresh_index, text = next(computed)
            texts[fresh_index] = text
            waiting.discard(fresh_index)
        yield index, texts.pop(index, b"")


def _write(fresh: dict[bytes, bytes], options: ReadOptions) -> None:
    if fresh and options.index is not None:
        with options.index() as index:
            index.put(fresh, are_packed=True)
        fresh.clear()

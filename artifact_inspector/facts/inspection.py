"""From an artifact to its facts, each computed when a view reads it.

`inspect_artifact` lets a view read what it shows, keeps that, and lets the parsed files go. A fact that is read later
is computed from the files again. A stage that cannot be read costs a named problem and leaves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from artifact_inspector.facts.kernel import KernelFacts, View, read_everything
from artifact_inspector.facts.lazy import FactSource
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.reading import TextCache, without_collection
from artifact_inspector.files.cache import Artifact, Cache


def inspect_cache(
    cache: Cache,
    artifacts: Iterable[Artifact] | None = None,
    *,
    progress: Callable[[Artifact], None] | None = None,
    disassemble: Disassemble | None = None,
    view: View | None = None,
) -> Iterator[KernelFacts]:
    """The facts of a cache's kernels, one after the other.

    Args:
        progress: called with each kernel before it is read.
        disassemble: makes SASS a stage of kernels that have a cubin, and AMDGCN of those that have only an
            hsaco. Without it only saved text is a stage.
        view: reads what is to be computed while a kernel's files are open; everything by default.
    """
    texts = TextCache()
    for artifact in cache.entries if artifacts is None else artifacts:
        if progress is not None:
            progress(artifact)
        yield inspect_artifact(artifact, disassemble, view, texts)


def inspect_artifact(
    artifact: Artifact, disassemble: Disassemble | None = None, view: View | None = None, texts: TextCache | None = None
) -> KernelFacts:
    """The facts of one kernel from whichever of its stages can be read.

    Args:
        view: as of `inspect_cache`.
        texts: shares what is computed from the same text with other kernels of the run.
    """
    source = FactSource(artifact, b"", disassemble, texts)
    kernel = KernelFacts.on_demand(source, artifact=artifact)
    with without_collection():
        (read_everything if view is None else view)(kernel)
        source.let_go()
    return kernel

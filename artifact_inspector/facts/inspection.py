"""From an artifact to its facts, each found when a view asks for it.

`inspect_artifact` gives a kernel whose facts are found by the passes of two tables. It lets a view ask, keeps
what that found, and lets the parsed files go; a fact that is asked for later is found from the files
anew. A stage that cannot be read costs a named problem and leaves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from artifact_inspector.facts.asked import View, ask_all, kernel_of
from artifact_inspector.facts.collection import without_collection
from artifact_inspector.facts.commons import Commons
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.kernel_passes import KERNEL_PASSES
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.stage_passes import STAGE_PASSES
from artifact_inspector.facts.table import Table
from artifact_inspector.files.cache import Artifact, Cache

PASSES = {row.name: row for row in (*STAGE_PASSES, *KERNEL_PASSES)}
READ = ("module", "outline")
"""Passes without which a stage is not there."""


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
        progress: is told of each kernel beforehand.
        disassemble: makes SASS a stage of kernels that have a cubin, and AMDGCN of those that have an hsaco
            alone; without it only saved text is a stage.
        view: asks for what is to be found while a kernel's files are at hand; everything by default.
    """
    commons = Commons()
    for artifact in cache.entries if artifacts is None else artifacts:
        if progress is not None:
            progress(artifact)
        yield inspect_artifact(artifact, disassemble, view, commons)


def inspect_artifact(
    artifact: Artifact,
    disassemble: Disassemble | None = None,
    view: View | None = None,
    commons: Commons | None = None,
) -> KernelFacts:
    """The facts of one kernel from whichever of its stages can be read.

    Args:
        view: as of `inspect_cache`.
        commons: what other kernels of the same run have told of the same text.
    """
    table = table_of(artifact, disassemble, commons)
    kernel = kernel_of(artifact, table)
    with without_collection():
        (ask_all if view is None else view)(kernel)
        table.let_go()
    return kernel


def table_of(
    artifact: Artifact, disassemble: Disassemble | None = None, commons: Commons | None = None
) -> Table:
    """The passes over a kernel's files, none of which has run."""
    return Table(artifact, PASSES, READ, {"disassemble": disassemble}, commons)

"""From an artifact to its facts, each found when a view asks for it.

`inspect_artifact` gives a kernel whose facts are found by the passes of two tables. It lets a view ask, keeps
what that found, and lets the parsed files go; a fact that is asked for later is found from the files
anew. A stage that cannot be read costs a named problem and leaves the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from artifact_inspector.analysis.access.accesses import count_accesses
from artifact_inspector.analysis.overlap.inflight import InFlight
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts
from artifact_inspector.facts.kernel_passes import KERNEL_PASSES
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.records import on_demand
from artifact_inspector.facts.stage_passes import STAGE_PASSES
from artifact_inspector.facts.table import Table
from artifact_inspector.files.cache import Artifact, Cache
from artifact_inspector.model import Module, Stage

__all__ = [
    "View",
    "ask_all",
    "inspect_artifact",
    "inspect_cache",
]

View = Callable[[KernelFacts], object]
"""Asks a kernel for what it is going to show."""

PASSES = {row.name: row for row in (*STAGE_PASSES, *KERNEL_PASSES)}
READ = ("module", "order", "census")
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
    for artifact in cache.entries if artifacts is None else artifacts:
        if progress is not None:
            progress(artifact)
        yield inspect_artifact(artifact, disassemble, view)


def inspect_artifact(
    artifact: Artifact, disassemble: Disassemble | None = None, view: View | None = None
) -> KernelFacts:
    """The facts of one kernel from whichever of its stages can be read.

    Args:
        view: as of `inspect_cache`.
    """
    table = Table(artifact, PASSES, READ, {"disassemble": disassemble})
    kernel = on_demand(KernelFacts, partial(_of_kernel, table), artifact=artifact)
    (ask_all if view is None else view)(kernel)
    table.let_go()
    return kernel


def ask_all(kernel: KernelFacts) -> None:
    """Every fact of a kernel."""
    for facts in kernel.stages.values():
        for work in facts.work.values():
            _ask(work)
        _ask(facts)
    _ask(kernel)


def _ask(record: Any) -> None:
    for field in fields(record):
        getattr(record, field.name)


def _of_kernel(table: Table, name: str) -> Any:
    if name == "problems":
        return table.problems
    if name == "stages":
        return {stage: _stage(table, stage) for stage in table.stages}
    return table.ask(name)


def _stage(table: Table, stage: Stage) -> StageFacts:
    """A stage with what the table of kernels shows of every one; the rest is asked for."""
    module: Module = table.ask("module", stage)
    census = table.ask("census", stage)
    return on_demand(
        StageFacts,
        partial(_of_stage, table, stage),
        stage=stage,
        file=module.name,
        instructions=census.instructions,
        unknown=census.unknown,
        counts=census.counts,
        regions=table.ask("order", stage).facts,
        attributes=module.attributes,
    )


def _of_stage(table: Table, stage: Stage, name: str) -> Any:
    if name != "work":
        return table.ask(name, stage)
    ordered = table.ask("order", stage)
    return (
        {}
        if ordered is None
        else {
            region.id: on_demand(RegionWork, partial(_of_region, table, stage, region.id))
            for region in ordered.facts
        }
    )


def _of_region(table: Table, stage: Stage, region: str, name: str) -> Any:
    row = "region_accesses" if name == "accesses" else name
    found: Mapping[str, Any] = table.ask(row, stage)
    return found[region] if region in found else _MISSING[name]()


_MISSING: Mapping[str, Callable[[], object]] = {
    "in_flight": lambda: InFlight(None, None, None, None, (), (), ("it could not be found",)),
    "matrix": tuple,
    "packed_dots": int,
    "accesses": lambda: count_accesses(()),
    "checks": dict,
    "conversions": tuple,
    "slots": tuple,
    "issue": lambda: None,
}
"""What stands where a fact of a region cannot be found, or is not asked for at its stage."""

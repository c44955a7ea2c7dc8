"""A kernel whose facts are asked of a source: the passes over its files, or what they found before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Protocol

from artifact_inspector.analysis.access.accesses import count_accesses
from artifact_inspector.analysis.overlap.inflight import InFlight
from artifact_inspector.facts.kernel import TOLD, KernelFacts, Outline, RegionWork, StageFacts
from artifact_inspector.facts.records import on_demand
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.model import Stage

View = Callable[[KernelFacts], object]
"""Asks a kernel for what it is going to show."""

ROW_OF = {"accesses": "region_accesses"}
"""What the passes call a fact of a region, where a stage has one of the same name."""


class Source(Protocol):
    """Where facts come from."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those that can be read."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong so far."""

    def ask(self, name: str, stage: Stage | None = None) -> Any:
        """A fact, or what stands in its place."""


def kernel_of(artifact: Artifact, source: Source) -> KernelFacts:
    """A kernel that asks a source for each fact when it is read."""
    return on_demand(KernelFacts, partial(_of_kernel, source, []), artifact=artifact)


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


def _of_kernel(source: Source, told: list[Problem], name: str) -> Any:
    if name == TOLD:
        return told
    if name == "problems":
        return (*source.problems, *told)
    if name == "stages":
        return {stage: _stage(source, stage) for stage in source.stages}
    return source.ask(name)


def _stage(source: Source, stage: Stage) -> StageFacts:
    """A stage with what is said of every one; the rest is asked for."""
    outline: Outline = source.ask("outline", stage)
    given = {field.name: getattr(outline, field.name) for field in fields(outline)}
    return on_demand(StageFacts, partial(_of_stage, source, outline, stage), stage=stage, **given)


def _of_stage(source: Source, outline: Outline, stage: Stage, name: str) -> Any:
    if name != "work":
        return source.ask(name, stage)
    ids = [region.id for region in outline.regions]
    return {region: on_demand(RegionWork, partial(_of_region, source, stage, region)) for region in ids}


def _of_region(source: Source, stage: Stage, region: str, name: str) -> Any:
    found: Mapping[str, Any] = source.ask(ROW_OF.get(name, name), stage)
    return found[region] if region in found else _MISSING[name]()


_MISSING: Mapping[str, Callable[[], object]] = {
    "in_flight": lambda: InFlight(None, None, None, None, (), (), ("it could not be found",)),
    "matrix": tuple,
    "operand_reads": tuple,
    "accesses": lambda: count_accesses(()),
    "checks": dict,
    "conversions": tuple,
    "trips": lambda: None,
    "slots": tuple,
    "issue": lambda: None,
}
"""What stands where a fact of a region cannot be found, or is not asked for at its stage."""

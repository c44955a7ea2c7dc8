"""Names that two kernels have in common: of stages for both vendors, of regions on whatever lines."""

from __future__ import annotations

from collections.abc import Iterable

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.model.region import RegionId

STEPS = ("ttir", "ttgir", "llir", "assembly", "sass")
"""Compilation stages by one name for both vendors; `assembly` is PTX or AMDGCN."""


class FactKey(str):
    """The key of a row: region, fact, and the stage of a fact that each stage has.

    Example:
        >>> FactKey("loop1.verdict.ttgir").step, FactKey("loop1.verdict.ttgir").without_step
        ('ttgir', 'loop1.verdict')
    """

    __slots__ = ()

    @property
    def step(self) -> str | None:
        """The stage; None for a fact that is not of each stage."""
        last = self.rpartition(".")[2]
        return last if last in STEPS else None

    @property
    def without_step(self) -> FactKey:
        """The key that the fact has at every stage."""
        return self if self.step is None else FactKey(self.rpartition(".")[0])


STRAIGHT = "straight"
"""Name of the region outside all loops."""


def is_loop_name(name: str) -> bool:
    """Whether a name is that of a loop; False for straight-line code, and for the whole kernel."""
    return bool(name) and name.rpartition("/")[2] != STRAIGHT


def step_of(stage: Stage) -> str:
    """The name of a stage that both vendors share."""
    return STEPS[stage.order]


def name_regions(kernel: KernelFacts) -> dict[str, str]:
    """Region id → a name that stays when lines shift: `loop1`, `loop2` by their place in the program.

    Loops that only the compiler made are left out.

    Example:
        >>> name_regions(kernel)  # doctest: +SKIP
        {'loop@81': 'loop1', 'straight': 'straight'}
    """
    ids = dict.fromkeys(
        region.id for facts in kernel.stages.values() for region in facts.regions if region.is_in_program
    )
    return _number_loops(ids)


def _number_loops(ids: Iterable[str]) -> dict[str, str]:
    region_ids = {name: RegionId.parse(name) for name in ids}
    lines: dict[str, set[int]] = {}
    for region_id in region_ids.values():
        if region_id.position is not None:
            lines.setdefault(region_id.function, set()).add(region_id.position)
    numbers = {
        (function, line): number
        for function, positions in lines.items()
        for number, line in enumerate(sorted(positions), 1)
    }
    return {
        name: name
        if region_id.position is None
        else f"{region_id.function}loop{numbers[region_id.function, region_id.position]}{region_id.suffix}"
        for name, region_id in region_ids.items()
    }

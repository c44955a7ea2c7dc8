"""The facts of one region at one stage: what its instructions do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from artifact_inspector.analysis.access.accesses import AccessCounts, count_accesses
from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.analysis.flow.loop_range import LoopRange
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.matrix.operand_reads import OperandReads
from artifact_inspector.analysis.order.regions import TRIP_KINDS, CostliestLine, LineCount, find_costliest_line
from artifact_inspector.analysis.overlap.issue_cycles import IssueEstimate
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
from artifact_inspector.analysis.overlap.partitions import PingPongSlot
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.facts.lazy import Facts, derived, none, of_group, of_hidden_group
from artifact_inspector.facts.reading import Unavailable
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.facts.stage_reading import StageReading

Value = TypeVar("Value")


def no_loads() -> LoadsInFlight:
    """In place of loads in flight that are unavailable."""
    return LoadsInFlight(None, None, None, None, (), (), ("it could not be found",))


def no_accesses() -> AccessCounts:
    """In place of accesses that are unavailable."""
    return count_accesses(())


class RegionWork(Facts):
    """What the instructions of one region do, beside their order."""

    if TYPE_CHECKING:  # internal, and so no fields
        _stage: Stage
        _region: str
        """Id of the region."""
        _regions: tuple[str, ...]
        """Ids of all regions of the stage."""

    @of_group(no_loads)
    def in_flight(self) -> LoadsInFlight:
        """Loads between their issue and the wait that completes them."""
        return self._value_here(self._reading.in_flight)

    @of_group(tuple)
    def matrix(self) -> tuple[MatrixWork, ...]:
        """Matrix instructions, or the dots of tensor-level IR."""
        return self._value_here(self._reading.matrix)

    @of_group(tuple)
    def operand_reads(self) -> tuple[OperandReads, ...]:
        """How operands of matrix instructions are read from shared memory; last stage, NVIDIA only."""
        return self._value_here(self._reading.operand_reads)

    @of_group(no_accesses)
    def accesses(self) -> AccessCounts:
        """Accesses to global memory."""
        return self._value_here(self._reading.region_accesses)

    @of_group(dict)
    def checks(self) -> Mapping[CheckKind, int]:
        """Work that keeps accesses inside the tensors: compares that decide accesses, integer divisions."""
        return self._value_here(self._reading.checks)

    @of_group(tuple)
    def conversions(self) -> tuple[LayoutConversion, ...]:
        """Layout conversions; TTGIR only."""
        return self._value_here(self._reading.conversions)

    @of_group(none)
    def trips(self) -> LoopRange | None:
        """Trips of a loop of tensor-level IR whose bounds are constants."""
        return self._value_here(self._reading.trips)

    @of_group(tuple)
    def slots(self) -> tuple[PingPongSlot, ...]:
        """Groups between the schedule hints of a loop; empty without hints."""
        return self._value_here(self._reading.slots)

    @of_group(none)
    def issue(self) -> IssueEstimate | None:
        """Issue cycles; SASS with its encoding only."""
        return self._value_here(self._reading.issue)

    @derived
    def line_counts(self) -> tuple[LineCount, ...]:
        """Waits, barriers and scratch accesses by source line; last stage only."""
        return tuple(line for line in self.code_lines if line.kind in TRIP_KINDS)

    @property
    def costliest_line(self) -> CostliestLine | None:
        """The source line with most of the instructions; last stage only, and None in a record of given values."""
        return find_costliest_line(self.code_lines) if self.is_on_demand else None

    @of_hidden_group(tuple)
    def code_lines(self) -> tuple[LineCount, ...]:
        """Instructions by kind and source line; last stage only."""
        return self._value_here(self._reading.line_counts)

    @of_group(none)
    def element_accesses(self) -> int | None:
        """Instructions that load or store 2 bytes or less of shared memory for each lane; last stage only."""
        return self._value_here(self._reading.element_accesses)

    @property
    def _reading(self) -> StageReading:
        return self.source_of("_reading").reading.at(self._stage)

    def _value_here(self, by_region: Mapping[str, Value]) -> Value:
        """The value of this region; unavailable where it was computed for other regions only."""
        if self._region not in by_region:
            raise Unavailable
        return by_region[self._region]

    @property
    def name(self) -> str:
        """Id of the region."""
        return self._region

    def siblings(self) -> Mapping[str, RegionWork]:
        """All regions of the stage, by id."""
        source = self.source_of("siblings")
        return {
            region: RegionWork.on_demand(source, _stage=self._stage, _region=region, _regions=self._regions)
            for region in self._regions
        }

    def section(self, name: str) -> str:
        """What the index calls a member."""
        return f"{name}@{self._stage.value}.regions"

"""Facts as flat records: one row for each region at each stage, the same columns for every kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.vocabulary.fact import Of, RegionSubject, StageSubject, Subject
from artifact_inspector.vocabulary.rows import record_values

if TYPE_CHECKING:
    import pandas
    import polars


class Tabular:
    """Something that has flat records, as data frames."""

    @abstractmethod
    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per region and stage."""

    def to_pandas(self) -> pandas.DataFrame:
        """The records as a data frame of pandas."""
        import pandas

        return pandas.DataFrame.from_records(self.to_records())

    def to_polars(self) -> polars.DataFrame:
        """The records as a data frame of polars."""
        import polars

        return polars.from_dicts(self.to_records(), infer_schema_length=None)


def records_of(kernel: KernelFacts) -> list[dict[str, Any]]:
    """A row for each region at each stage; numbers, strings and None only, in columns that never change.

    Facts of the whole kernel (registers, shared memory …) are repeated on each of its rows.
    """
    artifact = kernel.artifact
    kernel_values = {
        "name": artifact.display_name, "hash": artifact.hash,
        "target": None if artifact.target is None else artifact.target.arch,
        "triton_version": artifact.triton_version, "num_warps": artifact.num_warps,
        "num_stages": artifact.num_stages, **record_values(Subject(kernel), Of.KERNEL)
    }  # fmt: skip
    rows = []
    for stage, facts in kernel.stages.items():
        for region in facts.regions:
            ahead = region.distance
            low, high = ahead if isinstance(ahead, tuple) else (ahead, ahead)
            row = {
                **kernel_values, "stage": stage.value, "region": region.id, "kind": region.kind,
                "depth": region.depth, "is_main": region.id == kernel.principal,
                "is_in_program": region.is_in_program, "verdict": region.verdict, "phrase": region.phrase,
                "distance_min": low, "distance_max": high, "unroll_factor": region.unroll_factor,
                "first_line": region.lines[0], "last_line": region.lines[1], "rounds": len(region.rounds),
                **record_values(StageSubject(kernel, facts), Of.FILE, Of.STAGE),
                **record_values(RegionSubject(kernel, facts, region), Of.REGION, Of.REGION_AT_STAGE)
            }  # fmt: skip
            # enumerations, versions and architectures are subclasses of str
            rows.append({key: str(value) if isinstance(value, str) else value for key, value in row.items()})
    return rows

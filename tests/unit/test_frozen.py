"""A dataclass of the package is a value: nobody changes it, and it has no more than it says."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass

import artifact_inspector

MADE_STEP_BY_STEP = {
    "Block", "BlockRow", "LocatedRound", "LocatedStatement", "LoopPrefetch", "Machine", "MachineState", "Mbarrier",
    "OpenRegion", "RegionMeasurement", "ScheduleTrace", "StepCounters", "StoredFacts", "_Barrier", "_OpenFile",
    "_Search", "_SpeculativeMachine",
}  # fmt: skip
WITH_A_CACHE = {
    "BaselineKernel", "Candidate", "CompiledVariant", "DatasetSummary", "ExportPartition", "Inspection",
    "KernelFacts", "Machine", "MachineState", "Mbarrier", "OpenRegion", "OpenedKernels", "ReadOptions", "RegionView",
    "RegionWork", "SourceText", "SsaValues", "StageFacts", "StoredFacts", "TextExamples", "_Search", "_SpeculativeMachine",
}  # fmt: skip
OF_A_COMMAND_LINE = {
    "AdviceSettings",
    "AssembledCode",
    "CompileOptions",
    "LaunchOptions",
    "ListOptions",
    "MachineCode",
    "Selection",
}


def dataclasses() -> Iterator[type]:
    for found in pkgutil.walk_packages(artifact_inspector.__path__, f"{artifact_inspector.__name__}."):
        if not found.name.endswith("__main__"):
            for one in vars(importlib.import_module(found.name)).values():
                if isinstance(one, type) and is_dataclass(one) and one.__module__ == found.name:
                    yield one


def test_a_value_cannot_be_changed() -> None:
    changed = {one.__name__ for one in dataclasses() if not one.__dataclass_params__.frozen}  # type: ignore[attr-defined]
    assert changed == MADE_STEP_BY_STEP


def test_a_value_has_no_more_than_its_fields() -> None:
    """Documents of JSON inherit from one another, and may have what is kept."""
    open_ones = {one.__name__ for one in dataclasses() if "__slots__" not in vars(one)}
    assert {name for name in open_ones if not name.endswith("Document")} == WITH_A_CACHE | OF_A_COMMAND_LINE

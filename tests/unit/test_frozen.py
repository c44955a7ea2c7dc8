"""What an analysis or a comparison has found is a value: nobody changes it, and it has no more than it says."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass

import artifact_inspector.analysis
import artifact_inspector.comparison

MADE_STEP_BY_STEP = {"LoopPrefetch", "LocatedRound", "LocatedStatement", "RegionMeasurement", "_Barrier"}
WITH_A_CACHE = {"BaselineKernel", "Candidate", "SsaValues"}


def dataclasses() -> Iterator[type]:
    for room in (artifact_inspector.analysis, artifact_inspector.comparison):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            for one in vars(importlib.import_module(found.name)).values():
                if isinstance(one, type) and is_dataclass(one) and one.__module__ == found.name:
                    yield one


def test_what_was_found_cannot_be_changed() -> None:
    changed = {one.__name__ for one in dataclasses() if not one.__dataclass_params__.frozen}  # type: ignore[attr-defined]
    assert changed == MADE_STEP_BY_STEP


def test_what_was_found_has_no_more_than_its_fields() -> None:
    open_ones = {one.__name__ for one in dataclasses() if "__slots__" not in vars(one)}
    assert open_ones == WITH_A_CACHE

"""Launches in order as JSON: `rank --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifact_inspector.execution.timing.ranking import RankedLaunch
from artifact_inspector.execution.timing.variations import FailedConfiguration
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

define_shape(RankedLaunch, "launch hash label score bottleneck terms fits identical_to", rounded={"score": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingDocument(Document):
    """Launches in order, the fastest first: `inspect-kernel rank CACHE NAME --json`."""

    document: Literal["ranking"] = "ranking"
    rank: tuple[RankedLaunch, ...]
    """The best first; behind them those whose way is not known, and those that do not fit."""
    failed: tuple[FailedConfiguration, ...] = ()
    """What was to be tried and does not compile, with what the compiler said."""
    problems: tuple[str, ...] = ()
    """What each launch computes, by its place among the launches: a kernel with its arguments. Launches
    of one problem alone are rivals. Empty where all are of one."""
    notes: tuple[str, ...] = ()
    """Options on record that were not passed to the compiler."""

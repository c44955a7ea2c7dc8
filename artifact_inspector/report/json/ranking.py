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
    """The best first; last are those with an unknown path, and those that do not fit."""
    failed: tuple[FailedConfiguration, ...] = ()
    """Configurations that do not compile, with the compiler's message."""
    problems: tuple[str, ...] = ()
    """The problem of each launch, by its index: a kernel with its arguments. Only launches of one problem are
    ranked against each other. Empty if there is one problem."""
    notes: tuple[str, ...] = ()
    """Options on record that were not passed to the compiler."""

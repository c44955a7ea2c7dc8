"""A simulated launch as JSON: `predict --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.execution.prediction import LinePrediction, Prediction
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape
from artifact_inspector.report.json._finding import Finding

define_shape(
    Prediction,
    "kernel hash target grid threads counters unknown sampled cta_order l2 time stalls",
    without="shared_accesses",
)
define_shape(LinePrediction, without="is_copy")


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch with its findings."""

    prediction: Prediction
    findings: tuple[Finding, ...]


define_shape(LaunchRow, inline="prediction")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionDocument(Document):
    """What launches of kernels will do: `inspect-kernel predict CACHE NAME --json`."""

    document: Literal["prediction"] = "prediction"
    first: LaunchRow
    """The first launch; its keys are keys of the document."""
    launches: tuple[LaunchRow, ...]
    """Every launch, where there are several; empty for one."""
    notes: tuple[str, ...] = ()
    """What was not simulated, and why."""


define_shape(PredictionDocument, inline="first")


def prediction_document(found: Sequence[Prediction], notes: Sequence[str] = ()) -> PredictionDocument:
    """What was found, as JSON."""
    rows = tuple(LaunchRow(prediction, find_launch_findings(prediction)) for prediction in found)
    return PredictionDocument(first=rows[0], launches=rows if len(rows) > 1 else (), notes=tuple(notes))

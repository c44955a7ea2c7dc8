"""Simulated launches as JSON: `predict`, `rank`, `check-memory`; and `predict --product`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from artifact_inspector.analysis.access.matrix_traffic import MatrixTraffic
from artifact_inspector.execution.prediction import LinePrediction, Prediction
from artifact_inspector.execution.timing.ranking import RankedLaunch
from artifact_inspector.execution.timing.variations import FailedConfiguration
from artifact_inspector.findings import Finding, find_launch_findings
from artifact_inspector.hardware.peaks import Peaks, peak_type
from artifact_inspector.memory_checks.problems import MemoryReport
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import INLINED, define_shape, hidden, named, rounded
from artifact_inspector.report.line_limit import MAX_LINES, is_brief
from artifact_inspector.report.prediction import memory_cost

define_shape(
    Prediction, lambda x: (
        x.kernel, x.hash, x.target, x.grid, x.threads, x.counters, x.unknown, x.sampled, x.cta_order, x.l2,
        x.time, x.stalls, *hidden(x.shared_accesses, x.repeats_work),
    ),
)  # fmt: skip
define_shape(LinePrediction, lambda x: (x.stage, *hidden(x.is_copy)))


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch with its findings."""

    prediction: Prediction = field(metadata=INLINED)
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class PredictionDocument(Document):
    """What launches of kernels will do: `inspect-kernel predict CACHE NAME --json`."""

    first: LaunchRow = field(metadata=INLINED)
    """The first launch; its keys are keys of the document."""
    launches: tuple[LaunchRow, ...]
    """Every launch, where there are several; empty for one."""
    notes: tuple[str, ...] = ()
    """What was not simulated, and why."""


def prediction_document(found: Sequence[Prediction], notes: Sequence[str] = ()) -> PredictionDocument:
    """What was found, as JSON."""
    rows = tuple(LaunchRow(_shorten(prediction), find_launch_findings(prediction)) for prediction in found)
    return PredictionDocument(first=rows[0], launches=rows if len(rows) > 1 else (), notes=(*found[0].notes, *notes))


def _shorten(prediction: Prediction) -> Prediction:
    """With `--brief`, the lines that cost most memory traffic and stall longest; no line without either."""
    if not is_brief():
        return prediction
    by_line, by_source = (
        tuple(sorted(filter(lambda line: any(memory_cost(line)), lines), key=memory_cost, reverse=True)[:MAX_LINES])
        for lines in (prediction.by_line, prediction.by_source)
    )
    return replace(prediction, by_line=by_line, by_source=by_source, stalls=prediction.stalls[:MAX_LINES])


define_shape(
    RankedLaunch, lambda x: (
        x.launch, x.hash, x.label, rounded(x.score, 1), x.bottleneck, x.terms, x.fits, x.identical_to,
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RankingDocument(Document):
    """Launches in order, the fastest first: `inspect-kernel rank CACHE NAME --json`."""

    rank: tuple[RankedLaunch, ...]
    """The best first; last are those with an unknown path, and those that do not fit."""
    failed: tuple[FailedConfiguration, ...] = ()
    """Configurations that do not compile, with the compiler's message."""
    problems: tuple[str, ...] = ()
    """The problem of each launch, by its index: a kernel with its arguments. Only launches of one problem are
    ranked against each other. Empty if there is one problem."""
    notes: tuple[str, ...] = ()
    """Options on record that were not passed to the compiler."""


define_shape(MemoryReport, lambda x: (x.kernel, x.hash, x.target, x.grid, x.status))


@dataclass(frozen=True, kw_only=True)
class MemoryCheckDocument(Document):
    """Memory errors of launches: `inspect-kernel check-memory CACHE --json`."""

    status: str
    """`error` if any launch has one, else `undecided` if any could not be decided, else `clean`."""
    launches: tuple[MemoryReport, ...]


def memory_check_document(launches: Sequence[MemoryReport], status: str) -> MemoryCheckDocument:
    """Memory errors as JSON."""
    return MemoryCheckDocument(status=status, launches=tuple(launches))


@dataclass(frozen=True, kw_only=True)
class BandwidthDocument(Document):
    """What a matrix product moves: `inspect-kernel bandwidth MxK@KxN --json`."""

    traffic: MatrixTraffic = field(metadata=INLINED)
    seconds: float | None
    """The time that was given."""
    bytes_per_second: float | None
    flop_per_second: float | None
    share_of_peak: float | None
    """Of the bandwidth that was given as the peak."""
    flop_per_byte: float
    share_of_arithmetic: float | None
    """Of the peak of the device that was named, in the first type."""


define_shape(
    MatrixTraffic, lambda x: (
        x.m, x.n, x.k, named("bytes", x.total), named("bytes_of", x.bytes), x.flop, *hidden(x.bits),
    ),
)  # fmt: skip


def traffic_document(
    traffic: MatrixTraffic, types: Sequence[str], seconds: float | None, peaks: Peaks | None
) -> BandwidthDocument:
    """The count, and what a time makes of it; the arithmetic's peak is that of the first type."""
    rate = None if seconds is None else traffic.bandwidth(seconds)
    flops = None if seconds is None else traffic.flop / seconds
    unit = peak_type(types[0])
    peak = peaks.peak_for_type(unit) if peaks is not None and unit else None
    return BandwidthDocument(
        traffic=traffic,
        seconds=seconds,
        bytes_per_second=rate,
        flop_per_second=flops,
        share_of_peak=None if rate is None or peaks is None else rate / peaks.bandwidth,
        flop_per_byte=traffic.flop / traffic.total,
        share_of_arithmetic=None if flops is None or peak is None else flops / peak[1],
    )

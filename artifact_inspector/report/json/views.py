"""Views of one kernel as JSON: `--ir --json`, `--timeline --json`, `--registers --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from artifact_inspector.analysis.overlap.execution_track import RegionSpan
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.facts.lane import Event, LoadSpan
from artifact_inspector.facts.pressure import KernelPressure
from artifact_inspector.facts.scene import Scene
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import INLINED, define_shape, hidden, named, narrowed, words
from artifact_inspector.report.listing import ListedLine

define_shape(ListedLine, lambda x: (named("line", x.number),))


@dataclass(frozen=True, kw_only=True)
class ListingDocument(Document):
    """The lines of one region with their events: `inspect-kernel CACHE NAME --ir --json`."""

    name: str
    """Of the kernel."""
    hash: str
    """Of the kernel's cache entry."""
    stage: Stage
    file: str
    """From the cache directory."""
    region: str
    lines: tuple[ListedLine, ...]


def listing_document(
    kernel: KernelFacts, stage: StageFacts, region: str, lines: Sequence[ListedLine]
) -> ListingDocument:
    """The lines of one region with their events."""
    return ListingDocument(
        name=kernel.artifact.display_name,
        hash=kernel.artifact.hash,
        stage=stage.stage,
        file=stage.file,
        region=region,
        lines=tuple(lines),
    )


define_shape(
    Event, lambda x: (

        named("kind", narrowed(x.step.kind.count_name, words(*(kind.count_name for kind in EventKind if kind.letter)))),
        x.step.repetitions, x.step.region, x.step.round, x.step.start, x.step.stop, x.step.lines, x.first.opcode,
        x.first.text, x.first.source, *hidden(x.step, x.first),
    ),
)  # fmt: skip
define_shape(
    LoadSpan, lambda x: (
        named("event", x.flight.step), x.flight.loads, x.flight.bytes, x.flight.start, x.flight.end,
        x.flight.back_edges, x.flight.is_after_loop, x.flight.is_by_wait, x.flight.is_bounded, *hidden(x.flight),
    ),
)  # fmt: skip
define_shape(RegionSpan, lambda x: (x.region, x.kind, x.start, x.stop, x.depth, x.unknown_reason))


@dataclass(frozen=True, kw_only=True)
class TimelineDocument(Document):
    """Each stage of a kernel as it runs: `inspect-kernel timeline CACHE NAME --json`."""

    scene: Scene = field(metadata=INLINED)


define_shape(
    KernelPressure, lambda x: (
        x.kernel, x.hash, x.target, x.stage, x.peak, x.peak_line, x.peak_source, x.allocated, x.by_bank,
        x.live_at_peak, x.by_source, x.by_instruction, x.blocks, narrowed(x.limited_by, tuple[str, ...]),
    ),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PressureDocument(Document):
    """Registers alive in kernels: `inspect-kernel pressure CACHE --json`."""

    kernels: tuple[KernelPressure, ...]

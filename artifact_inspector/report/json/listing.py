"""The lines of a region as JSON: `--ir --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.model import Stage
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape
from artifact_inspector.report.listing import ListedLine

define_shape(ListedLine, "line=number")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingDocument(Document):
    """The lines of one region with their events: `inspect-kernel CACHE NAME --ir --json`."""

    document: Literal["listing"] = "listing"
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

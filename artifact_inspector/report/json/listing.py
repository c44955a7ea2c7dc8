"""The lines of a region as JSON: `--ir --json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from artifact_inspector.report.json._types import SCHEMA_VERSION, SchemaVersion, StageName

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts, StageFacts
    from artifact_inspector.report.listing import ListedLine

__all__ = ["ListingJson", "listing_document"]


class ListedLineJson(TypedDict):
    """One line of a stage's file."""

    line: int
    events: str
    """Letters of its instructions with their number, `L4`; empty for a line that holds no event."""
    in_flight: int | None
    """Loads in flight after it, on a line where the number changes."""
    text: str


class ListingJson(TypedDict):
    """The lines of one region with their events: `inspect-kernel CACHE NAME --ir --json`."""

    schema_version: SchemaVersion
    document: Literal["listing"]
    name: str
    """Of the kernel."""
    hash: str
    """Of the kernel's cache entry."""
    stage: StageName
    file: str
    """From the cache directory."""
    region: str
    lines: list[ListedLineJson]


def listing_document(
    kernel: KernelFacts, stage: StageFacts, region: str, lines: Sequence[ListedLine]
) -> ListingJson:
    """The lines of one region with their events."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "listing",
        "name": kernel.artifact.display_name,
        "hash": kernel.artifact.hash,
        "stage": stage.stage.value,
        "file": stage.file,
        "region": region,
        "lines": [
            {"line": x.number, "events": x.events, "in_flight": x.in_flight, "text": x.text} for x in lines
        ],
    }

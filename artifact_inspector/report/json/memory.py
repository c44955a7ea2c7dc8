"""Memory as JSON: accesses, what keeps loads narrow, cache policies, the shared-memory bill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypedDict

from artifact_inspector.analysis.access.load_widths import Reason
from artifact_inspector.report.json._types import Lines, Words

if TYPE_CHECKING:
    from artifact_inspector.analysis.access.accesses import Accesses
    from artifact_inspector.analysis.access.cache_policies import Policy
    from artifact_inspector.analysis.access.load_widths import LoadWidth
    from artifact_inspector.analysis.shared.bill import Allocation, Bill

__all__ = [
    "AccessesJson",
    "AccountedJson",
    "AllocationJson",
    "LoadJson",
    "PolicyJson",
    "accesses",
    "accounted",
    "allocation",
    "load",
    "load_widths",
    "policy",
]


class AccessesJson(TypedDict):
    """Memory accesses of a file by their width: bytes per thread, or `unknown`, → instructions."""

    loads: dict[str, int]
    """Loads into registers."""
    copies: dict[str, int]
    """Copies by each thread from global to shared memory."""
    stores: dict[str, int]
    tiles: dict[str, int]
    """Loads and copies of a tile for the whole block: bytes of the tile → instructions."""
    tile_stores: dict[str, int]
    predicated: int
    """Accesses that a thread may skip."""
    folded: int
    """Accesses that take their mask, if any, in an operand."""
    cache: dict[str, int]
    """Cache modifiers and eviction policies as written → instructions."""


class CauseJson(TypedDict):
    """One thing that keeps a load narrow."""

    reason: Annotated[str, Words(tuple(reason.value for reason in Reason))]
    limit: int
    """Bytes per thread that it allows."""
    name: str | None
    """The argument, constant or layout that it is about."""
    line: int
    """Of the evidence, in the first stage (for a layout, in TTGIR)."""


class LoadJson(TypedDict):
    """A load statement of the program, and how wide it became."""

    line: int
    """In the first stage."""
    source: str | None
    """`file.py:line` of the user's code."""
    name: str | None
    """What the IR calls the value."""
    masked: bool
    width: int | None
    """Bytes per thread of its narrowest instruction at the last stage; null where it was not found, or
    is a tile."""
    widths: dict[str, int]
    """Bytes per thread → instructions at the last stage."""
    causes: list[CauseJson]
    """Empty for a load of full width, and where nothing explains it."""


class PolicyJson(TypedDict):
    """A load or store that asks for a cache modifier or an eviction policy, and what became of it."""

    line: int
    """In the first stage."""
    source: str | None
    """`file.py:line` of the user's code."""
    store: bool
    asked: tuple[str, ...]
    found: tuple[str, ...]
    """What its instructions at the last stage say of caches."""
    lost: tuple[str, ...]
    """What was asked for and stands in none of them."""
    lines: tuple[int, ...]
    """Its instructions at the last stage."""


class AllocationJson(TypedDict):
    """One piece of shared memory."""

    bytes: int | None
    """With all its buffers and its padding; null where the amount cannot be told."""
    buffers: int
    """How many tiles it holds."""
    line: int
    """In TTGIR."""
    source: str | None
    """`file.py:line` of the user's code."""
    purpose: str
    name: str | None
    """The value's name in the source."""
    scratch: bool
    """Taken by an operation while it runs; stands in no text."""
    live: Lines
    """First and last line of the TTGIR at which it is live."""
    offset: int | None
    """Where Triton places it; null unless the bill adds up."""


class AccountedJson(TypedDict):
    """Whether the shared-memory bill explains what the metadata says."""

    declared: int | None
    """Bytes per block that the metadata names."""
    peak: int | None
    """Bytes that Triton's allocator needs for the bill; null when the size of one entry is not known."""
    accounted: bool | None
    """True when the two agree to the byte; null with nothing to compare."""
    unexplained: int | None
    """Declared bytes that no entry explains; less than 0 where the bill is too long."""
    note: str | None
    """What does not add up."""


def accesses(found: Accesses) -> AccessesJson:
    """The accesses of a file."""
    return {
        "loads": _histogram(found.loads),
        "copies": _histogram(found.copies),
        "stores": _histogram(found.stores),
        "tiles": _histogram(found.tiles),
        "tile_stores": _histogram(found.tile_stores),
        "predicated": found.predicated,
        "folded": found.folded,
        "cache": dict(found.cache),
    }


def load_widths(found: Accesses) -> dict[str, int]:
    """Bytes per thread → loads and copies together, widest first; unknown widths left out."""
    return {str(width): count for width, count in found.load_widths.items()}


def load(found: LoadWidth) -> LoadJson:
    """A load statement."""
    return {
        "line": found.line,
        "source": found.source,
        "name": found.name or None,
        "masked": found.masked,
        "width": found.width,
        "widths": {str(width): count for width, count in found.widths.items()},
        "causes": [
            {"reason": x.reason.value, "limit": x.limit, "name": x.name or None, "line": x.line}
            for x in found.causes
        ],
    }


def policy(found: Policy) -> PolicyJson:
    """An access that asks for a policy."""
    return {
        "line": found.line,
        "source": found.source,
        "store": found.is_store,
        "asked": found.asked,
        "found": found.words,
        "lost": found.lost,
        "lines": found.lines,
    }


def allocation(entry: Allocation) -> AllocationJson:
    """An entry of the shared-memory bill."""
    return {
        "bytes": entry.bytes,
        "buffers": entry.buffers,
        "line": entry.line,
        "source": entry.source,
        "purpose": entry.purpose,
        "name": entry.name or None,
        "scratch": entry.is_scratch,
        "live": (entry.first, entry.last),
        "offset": entry.offset,
    }


def accounted(bill: Bill) -> AccountedJson:
    """The bill against the metadata."""
    return {
        "declared": bill.declared,
        "peak": bill.peak,
        "accounted": bill.accounted,
        "unexplained": bill.unexplained,
        "note": bill.note or None,
    }


def _histogram(widths: Mapping[int | None, int]) -> dict[str, int]:
    return {"unknown" if width is None else str(width): count for width, count in widths.items()}

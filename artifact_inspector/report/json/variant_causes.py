"""Why a kernel was compiled again, as JSON: `why --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifact_inspector.comparison.variant_causes import Causes, EntryDifference
from artifact_inspector.report.json._document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonsDocument(Document):
    """Differences of two entries of a cache: `inspect-kernel why CACHE A B --json`."""

    document: Literal["reasons"] = "reasons"
    left: str
    """Hash of the entry."""
    right: str
    """Hash of the other."""
    reasons: tuple[EntryDifference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CausesDocument(Document):
    """Why a kernel has its number of variants: `inspect-kernel why CACHE NAME --json`."""

    document: Literal["causes"] = "causes"
    name: str
    """Of the kernel."""
    causes: Causes

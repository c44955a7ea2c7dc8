"""Memory errors of launches as JSON: `check-memory --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.memory_checks.problems import MemoryReport
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

define_shape(MemoryReport, "kernel hash target grid status problems undecided coverage notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCheckDocument(Document):
    """Memory errors of launches: `inspect-kernel check-memory CACHE --json`."""

    document: Literal["memory_check"] = "memory_check"
    status: str
    """`error` if any launch has one, else `undecided` if any could not be decided, else `clean`."""
    launches: tuple[MemoryReport, ...]


def memory_check_document(launches: Sequence[MemoryReport], status: str) -> MemoryCheckDocument:
    """Memory errors as JSON."""
    return MemoryCheckDocument(status=status, launches=tuple(launches))

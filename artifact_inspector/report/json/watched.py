"""A kernel that came into a cache while it was watched, as JSON: one line of `watch --json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json.cache import KernelDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedDocument(Document):
    """A kernel that came into a cache: one line of `inspect-kernel watch --json`."""

    document: Literal["watched"] = "watched"
    cache: Path
    """The directory that is watched."""
    kernel: KernelDocument

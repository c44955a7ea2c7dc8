"""What the index of facts holds, as JSON: `index --json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from artifact_inspector.report.json._document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDocument(Document):
    """The result cache: `inspect-kernel --index-info --json`."""

    document: Literal["index"] = "index"
    file: Path
    """The file."""
    kernels: int
    bytes: int
    """Of their facts, as they are stored."""

"""Registers alive in machine code as JSON: `pressure --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifact_inspector.facts.pressure import KernelPressure
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

define_shape(KernelPressure, types={"limited_by": tuple[str, ...]})


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureDocument(Document):
    """Registers alive in kernels: `inspect-kernel pressure CACHE --json`."""

    document: Literal["pressure"] = "pressure"
    kernels: tuple[KernelPressure, ...]

"""What came of compiling kernels, as JSON: `compile --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from artifact_inspector.compiling import CompileResult
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

Plain = bool | int | float | str | None

define_shape(
    CompileResult,
    "kernel kernel_path target=target.arch triton config types constants options seconds"
    " cached=is_cached directory message remedy",
    without="is_usage_error details",
    rounded={"seconds": 3},
    types={"constants": Mapping[str, bool | int | float | str | list[Any] | None], "options": Mapping[str, Plain]},
    title="CompiledKernel",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledDocument(Document):
    """What came of compiling kernels: `inspect-kernel compile --json`."""

    document: Literal["compiled"] = "compiled"
    compiled: tuple[CompileResult, ...]

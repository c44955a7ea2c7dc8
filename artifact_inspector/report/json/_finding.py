"""A finding as every document has it."""

from __future__ import annotations

from artifact_inspector.findings import Finding, Remark
from artifact_inspector.report.json._encoding import define_shape

__all__ = ["Finding"]

define_shape(Finding, inline="remark")
define_shape(Remark, "message stage lines sources called_from", without="is_minor")

"""A finding as every document has it."""

from __future__ import annotations

from artifact_inspector.findings import Finding, Remark
from artifact_inspector.report.json._encoding import shape

__all__ = ["Finding"]

shape(Finding, inline="remark")
shape(Remark, "message stage lines sources called_from", without="is_minor")

"""Remarks as workflow commands of GitHub Actions, shown on the lines of a pull request.

Source: GitHub's "Workflow commands for GitHub Actions"; escapes as in its toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable

from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.remarks import SourceRemark

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_IN_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_TEXT, ":": "%3A", ",": "%2C"}


def workflow_commands(remarks: Iterable[SourceRemark]) -> str:
    """One line for each remark: `::error file=kernels/matmul.py,line=81,title=…::message`."""
    return "".join(_command(remark) for remark in remarks)


def _command(remark: SourceRemark) -> str:
    properties = {"title": escape_unprintable(remark.title)}
    if remark.location is not None and remark.location.is_found:
        properties = {"file": escape_unprintable(remark.location.path), "line": str(remark.location.line), **properties}
    property_text = ",".join(f"{name}={_quoted(value, _IN_PROPERTY)}" for name, value in properties.items())
    return f"::{_COMMANDS[remark.level]} {property_text}::{_quoted(escape_unprintable(remark.message), _IN_TEXT)}\n"


def _quoted(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)

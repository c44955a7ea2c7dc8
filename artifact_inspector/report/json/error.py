"""The document that replaces one that could not be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifact_inspector.errors import InspectorError
from artifact_inspector.files.cache import Problem
from artifact_inspector.report.json._document import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDocument(Document):
    """Why there is nothing to print, from any command with `--json`, beside exit code 3."""

    document: Literal["error"] = "error"
    message: str
    """What is wrong, in one or two sentences."""
    remedy: str | None
    """What to do about it."""
    kernels: tuple[object, ...] = ()
    """Always empty."""
    problems: tuple[Problem, ...]
    """The message again, where every other document has what could not be read."""


def error_document(error: InspectorError) -> ErrorDocument:
    """An error in the place of a document."""
    return ErrorDocument(message=error.message, remedy=error.remedy or None, problems=(Problem(".", error.message),))

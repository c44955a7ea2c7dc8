"""What stands in the place of a document that could not be made."""

from __future__ import annotations

from typing import Literal, TypedDict

from artifact_inspector.errors import InspectorError
from artifact_inspector.files.cache import Problem
from artifact_inspector.report.json._types import SCHEMA_VERSION, ProblemJson, SchemaVersion, problem_list

__all__ = ["ErrorJson", "error_document"]


class ErrorJson(TypedDict):
    """Why there is nothing to print, from any command with `--json`, beside exit code 3."""

    schema_version: SchemaVersion
    document: Literal["error"]
    message: str
    """What is wrong, in one or two sentences."""
    remedy: str | None
    """What to do about it."""
    kernels: list[object]
    """Always empty."""
    problems: list[ProblemJson]
    """The message again, where every other document has what could not be read."""


def error_document(error: InspectorError) -> ErrorJson:
    """An error in the place of a document."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "error",
        "message": error.message,
        "remedy": error.remedy or None,
        "kernels": [],
        "problems": problem_list([Problem(".", error.message)]),
    }

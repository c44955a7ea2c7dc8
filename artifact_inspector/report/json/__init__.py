"""Reports as JSON: the documents, as types that a schema is made of, and what fills them.

A type stands beside the function that fills it, so that mypy proves the two alike; `schema` makes the
JSON Schema of the same types. Lines are 1-based lines of the stage's file, paths are relative to the cache
directory, shares are rounded to four places, and what is not known is null.
"""

from __future__ import annotations

from artifact_inspector.report.json._text import as_text
from artifact_inspector.report.json._types import SCHEMA_VERSION, SchemaVersion
from artifact_inspector.report.json.cache import cache_document
from artifact_inspector.report.json.error import error_document
from artifact_inspector.report.json.findings import finding_document, findings_document
from artifact_inspector.report.json.listing import listing_document

__all__ = [
    "SCHEMA_VERSION",
    "SchemaVersion",
    "as_text",
    "cache_document",
    "error_document",
    "finding_document",
    "findings_document",
    "listing_document",
]

"""Reports as JSON: the dataclasses themselves, encoded.

A document is a dataclass that is put together once; `schema` makes the JSON Schema of the same types. Lines
are 1-based lines of the stage's file, paths are relative to the cache directory, shares are rounded to four
places, and what is not known is null.
"""

from __future__ import annotations

from artifact_inspector.report.json._document import SCHEMA_VERSION
from artifact_inspector.report.json._encoding import as_text, encode

__all__ = ["SCHEMA_VERSION", "as_text", "encode"]

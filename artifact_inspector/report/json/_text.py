"""A document as text."""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = ["as_text"]


def as_text(document: Mapping[str, object], encoding: str | None) -> str:
    """The document as strict JSON, in ASCII where the stream's encoding is not UTF-8."""
    utf8 = (encoding or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    text = json.dumps(document, indent=2, ensure_ascii=not utf8, allow_nan=False) + "\n"
    # a lone surrogate has no UTF-8; JSON can still escape it
    return text if not utf8 else "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text)

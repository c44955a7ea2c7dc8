"""What the lexers have in common."""

from __future__ import annotations

from typing import Any

from pygments.token import Comment, Number, String, Whitespace

Rules = list[tuple[Any, ...]]

BLANK = (r"\s+", Whitespace)
SLASHES = (r"//[^\n]*", Comment.Single)
BLOCK_COMMENT = (r"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)", Comment.Multiline)
"""To the end of the text where nothing closes it."""
STRING = (r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*(?:"|\\?$)', String.Double)
"""To the end of the line where nothing closes it, which nobody then looks for again from within."""
FLOAT = (r"\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)", Number.Float)
HEX = (r"0[xX][0-9a-fA-F]+", Number.Hex)
INTEGER = (r"\d+", Number.Integer)

"""Rules that the lexers share."""

from __future__ import annotations

from typing import Any

from pygments.token import Comment, Number, String, Whitespace

Rules = list[tuple[Any, ...]]

BLANK = (r"\s+", Whitespace)
SLASHES = (r"//[^\n]*", Comment.Single)
BLOCK_COMMENT = (r"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)", Comment.Multiline)
"""Extends to the end of the text if it is not closed."""
STRING = (r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*(?:"|\\?$)', String.Double)
"""Extends to the end of the line if it is not closed."""
FLOAT = (r"\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)", Number.Float)
HEX = (r"0[xX][0-9a-fA-F]+", Number.Hex)
INTEGER = (r"\d+", Number.Integer)

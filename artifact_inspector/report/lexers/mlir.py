"""TTIR and TTGIR: MLIR as Triton prints it."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation

from artifact_inspector.report.lexers._shared import BLANK, FLOAT, HEX, INTEGER, SLASHES, STRING


class TritonIrLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """Triton's tensor-level IR, in MLIR's generic and pretty forms.

    Source: MLIR Language Reference, notation and top-level productions.
    """

    name = "Triton IR"
    aliases: ClassVar[list[str]] = ["ttir", "ttgir"]
    filenames: ClassVar[list[str]] = ["*.ttir", "*.ttgir"]
    url = "https://mlir.llvm.org/docs/LangRef/"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            BLANK,
            SLASHES,
            (r"loc(?=\()|#loc\w*", Comment.Special),
            STRING,
            (r"%[\w$.-]+(?:#\d+)?", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"@(?=\")", Name.Function),
            (r"\^[\w$.-]*", Name.Label),
            (r"[#!][A-Za-z_][\w$.]*", Name.Constant),
            (r"\{-#|#-\}", Punctuation),
            (r"(?:tensor|memref|vector|ptr)(?=<)", Keyword.Type),
            (r"(?:\d+x)+(?=[A-Za-z!])", Number.Integer),
            (r"(?:[su]?i\d+|index|bf16|tf32|f\d\w*|none|token)\b", Keyword.Type),
            (r"(?:true|false|unit|dense|array)\b", Keyword.Constant),
            HEX,
            FLOAT,
            INTEGER,
            (r"[A-Za-z_][\w$]*(?:\.[\w$]+)+", Name.Builtin),
            (r"[A-Za-z_][\w$]*", Keyword),
            (r"->|::|[-=:*+/?]", Operator),
            (r"[][(){}<>,;|]", Punctuation),
        ]
    }

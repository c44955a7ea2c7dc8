"""Pygments lexers for the languages of the cache; MLIR is the one that Pygments lacks."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import AMDGPULexer, LlvmLexer, PtxLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

from artifact_inspector.model import Stage

__all__ = ["MlirLexer", "lexer_for"]


class MlirLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """MLIR's generic and pretty forms, as Triton prints them.

    Source: MLIR Language Reference, notation and top-level productions.
    """

    name = "MLIR"
    aliases: ClassVar[list[str]] = ["mlir"]
    filenames: ClassVar[list[str]] = ["*.mlir", "*.ttir", "*.ttgir"]
    url = "https://mlir.llvm.org/docs/LangRef/"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"loc(?=\()", Comment.Special),
            (r"#loc\w*", Comment.Special),
            (r'"(?:[^"\\\n]|\\.)*"', String.Double),
            (r"%[\w$.-]+(?:#\d+)?", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"@(?=\")", Name.Function),
            (r"\^[\w$.-]*", Name.Label),
            (r"[#!][A-Za-z_][\w$.]*", Name.Constant),
            (r"(?:tensor|memref|vector|ptr)(?=<)", Keyword.Type),
            (r"(?:\d+x)+(?=[A-Za-z!])", Number.Integer),
            (r"(?:[su]?i\d+|index|bf16|tf32|f\d\w*|none|token)\b", Keyword.Type),
            (r"(?:true|false|unit|dense|array)\b", Keyword.Constant),
            (r"-?\d+\.\d*(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+", Number.Float),
            (r"0x[0-9a-fA-F]+", Number.Hex),
            (r"-?\d+", Number.Integer),
            (r"[A-Za-z_][\w$]*(?:\.[\w$]+)+", Name.Builtin),
            (r"[A-Za-z_][\w$-]*", Keyword),
            (r"->|[=:*+/?]", Operator),
            (r"[][(){}<>,]", Punctuation),
            (r".", Punctuation),
        ]
    }


class SassLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """SASS as NVIDIA's disassemblers print it.

    Source: CUDA Binary Utilities, Instruction Set Reference.
    """

    name = "SASS"
    aliases: ClassVar[list[str]] = ["sass"]
    filenames: ClassVar[list[str]] = ["*.sass"]
    url = "https://docs.nvidia.com/cuda/cuda-binary-utilities/"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"//[^\n]*|/\*.*?\*/", Comment),
            (r'"[^"\n]*"', String.Double),
            (r"@!?U?P(?:\d|T)\b", Keyword.Pseudo),
            (r"!?U?P(?:\d|T)\b", Name.Variable),
            (r"-?\|?U?R(?:\d+|Z)\b(?:\.\w+)*", Name.Variable),
            (r"`?\(?\.L_\w+\)?:?", Name.Label),
            (r"\.[\w.]+", Name.Attribute),
            (r"[A-Z][A-Z0-9_]+(?:\.[A-Za-z0-9_]+)*", Name.Builtin),
            (r"-?0x[0-9a-fA-F]+", Number.Hex),
            (r"-?\d+(?:\.\d+)?", Number),
            (r"[A-Za-z_$][\w$]*:?", Name),
            (r".", Punctuation),
        ]
    }


_LEXERS = {
    Stage.TTIR: MlirLexer,
    Stage.TTGIR: MlirLexer,
    Stage.LLIR: LlvmLexer,
    Stage.PTX: PtxLexer,
    Stage.SASS: SassLexer,
    Stage.AMDGCN: AMDGPULexer,
}


def lexer_for(stage: Stage) -> Lexer:
    """A lexer that keeps the text as it is, blank lines at its ends included."""
    lexer: Lexer = _LEXERS[stage](stripnl=False, ensurenl=False)
    return lexer

"""LLVM IR as the LLVM inside Triton prints it, of any version."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String

from artifact_inspector.report.lexers._shared import BLANK, FLOAT, INTEGER

_OPCODES = (
    "add", "addrspacecast", "alloca", "and", "ashr", "atomicrmw", "bitcast", "br", "call", "cmpxchg",
    "extractelement", "extractvalue", "fadd", "fcmp", "fdiv", "fence", "fmul", "fneg", "fpext", "fptosi",
    "fptoui", "fptrunc", "freeze", "frem", "fsub", "getelementptr", "icmp", "insertelement", "insertvalue",
    "inttoptr", "invoke", "load", "lshr", "mul", "or", "phi", "ptrtoint", "resume", "ret", "sdiv", "select",
    "sext", "shl", "shufflevector", "sitofp", "srem", "store", "sub", "switch", "trunc", "udiv", "uitofp",
    "unreachable", "urem", "va_arg", "xor", "zext",
)  # fmt: skip
"""Instructions (LLVM Language Reference, Instruction Reference)."""
_DECLARING = ("declare", "define", "source_filename", "target", "attributes", "global", "constant", "type")


class TritonLlvmLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """LLVM IR.

    Source: LLVM Language Reference Manual, Syntax, Identifiers and Metadata.
    """

    name = "Triton LLVM IR"
    aliases: ClassVar[list[str]] = ["triton-llir"]
    filenames: ClassVar[list[str]] = ["*.llir"]
    url = "https://llvm.org/docs/LangRef.html"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            BLANK,
            (r";[^\n]*", Comment.Single),
            (r'c?"[^"\n]*(?:"|$)', String.Double),
            (r"(?:[A-Za-z_$.][\w$.-]{0,199}|\d{1,20}):", Name.Label),
            (r"%[\w$.-]+|%(?=\")", Name.Variable),
            (r"[@$][\w$.-]+|[@$](?=\")", Name.Function),
            (r"#\d+|\^\d+", Name.Decorator),
            (r"!(?:[A-Za-z_][\w.]*|\d+)?", Comment.Special),
            (r"0x[KLMHR]?[0-9a-fA-F]+", Number.Hex),
            FLOAT,
            INTEGER,
            (r"\.\.\.", Punctuation),
            (r"(?:i\d+|half|bfloat|float|double|fp128|ptr|void|label|token|metadata|x)\b", Keyword.Type),
            (r"(?:true|false|null|none|undef|poison|zeroinitializer)\b", Keyword.Constant),
            (words(_OPCODES, suffix=r"\b"), Name.Builtin),
            (words(_DECLARING, suffix=r"\b"), Keyword.Declaration),
            (r"[A-Za-z_][\w.]*", Keyword),
            (r"[-=*+:|/]", Operator),
            (r"[][(){}<>,]", Punctuation),
        ]
    }

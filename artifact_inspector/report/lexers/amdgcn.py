"""AMDGCN as LLVM's AMDGPU back end writes it, with its line tables and its metadata."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Operator, Punctuation, String

from artifact_inspector.report.lexers._shared import BLANK, FLOAT, HEX, INTEGER, SLASHES, STRING


class AmdgcnLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """AMD's assembly.

    Source: LLVM, User Guide for AMDGPU Backend, Assembler and Code Object Metadata (which is YAML).
    """

    name = "AMDGCN"
    aliases: ClassVar[list[str]] = ["amdgcn"]
    filenames: ClassVar[list[str]] = ["*.amdgcn"]
    url = "https://llvm.org/docs/AMDGPUUsage.html"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            BLANK,
            (r";[^\n]*", Comment.Single),
            SLASHES,
            STRING,
            (r"'[^'\n]*(?:'|$)", String.Single),
            (r"^[.$A-Za-z_][\w.$]*:", Name.Label),
            (r"\.L[\w.$]+", Name.Label),
            (r"^---$|^\.\.\.$", Punctuation),
            (r"\.?[A-Za-z_][\w.]*(?=:\s)", Name.Tag),
            (r"\.[A-Za-z_][\w.]*", Keyword.Declaration),
            (r"[vsa]\d+\b|[vsa](?=\[)|ttmp\d+\b|(?:vcc|exec|flat_scratch|xnack_mask)(?:_lo|_hi)?\b|"
             r"(?:m0|scc|null|off|src_\w+)\b", Name.Variable),
            (r"(?:v|s|ds|global|buffer|flat|scratch|image|tbuffer|tensor|cluster)_\w+", Name.Function),
            HEX,
            FLOAT,
            INTEGER,
            (r"@\w+", Name.Builtin),
            (r"[A-Za-z_$][\w$]*(?:[.-]+[\w$]+)*", Name.Attribute),
            (r"[-+*/=!:&|^~%#]", Operator),
            (r"[][(){}<>,.]", Punctuation),
        ]
    }  # fmt: skip

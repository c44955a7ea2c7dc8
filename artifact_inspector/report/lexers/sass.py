"""SASS as nvdisasm and cuobjdump print it."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Keyword, Name, Number, Operator, Punctuation

from artifact_inspector.report.lexers._shared import BLANK, BLOCK_COMMENT, FLOAT, HEX, INTEGER, SLASHES, STRING


class SassLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """NVIDIA's machine code as text.

    Source: CUDA Binary Utilities, Instruction Set Reference.
    """

    name = "SASS"
    aliases: ClassVar[list[str]] = ["nvidia-sass", "sass"]
    filenames: ClassVar[list[str]] = ["*.sass"]
    url = "https://docs.nvidia.com/cuda/cuda-binary-utilities/"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            BLANK,
            SLASHES,
            BLOCK_COMMENT,
            STRING,
            (r"[.$A-Za-z_][\w.$]{0,199}:(?!:)", Name.Label),
            (r"@!?U?P(?:\d+|T)\b", Keyword.Pseudo),
            (r"\.L_[\w.$]+", Name.Label),
            (r"U?P(?:\d+|T|R)\b|(?:UR|R|SB|B)(?:\d+|Z)\b|UR?PT?Z?\b", Name.Variable),
            (r"SR_\w+(?:\.\w+)*|SRZ\b", Name.Builtin),
            (r"(?:c|cx|desc|gdesc|idesc|tmem|a|t)(?=\[)", Name.Builtin),
            HEX,
            FLOAT,
            INTEGER,
            (r"[-+]?(?:INF|QNAN|SNAN)\b", Number.Float),
            (r"[A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*", Name.Function),
            (r"\.[A-Za-z0-9_]+", Name.Attribute),
            (r"[A-Za-z_$][\w$.]*", Name),
            (r"[-+*/=!~&?`@^%|]", Operator),
            (r"[][(){}<>,;:]", Punctuation),
        ]
    }

"""PTX as LLVM's NVPTX back end writes it, with the line tables after the code."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Keyword, Name, Number, Operator, Punctuation

from artifact_inspector.report.lexers._shared import BLANK, BLOCK_COMMENT, FLOAT, SLASHES, STRING


class TritonPtxLexer(RegexLexer):  # type: ignore[misc,unused-ignore]
    """PTX.

    Source: PTX ISA, Syntax (statements, identifiers, constants) and Directives.
    """

    name = "Triton PTX"
    aliases: ClassVar[list[str]] = ["triton-ptx"]
    filenames: ClassVar[list[str]] = ["*.ptx"]
    priority = 0.4
    """Below that of Pygments' own lexer, which stays the default for `.ptx` files."""
    url = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            BLANK,
            SLASHES,
            BLOCK_COMMENT,
            STRING,
            (r"[$A-Za-z_][\w$]*:(?!:)", Name.Label),
            (r"%(?:n?(?:tid|ctaid|warpid|smid)|laneid|gridid|clock(?:64|_hi)?|cluster\w*|lanemask_\w+|"
             r"globaltimer\w*|dynamic_smem_size|envreg\d+|is_explicit_cluster)(?:\.[xyzw])?(?![\w$])",
             Name.Builtin),
            (r"%[A-Za-z_$][\w$]*(?:\.[xyzw])?", Name.Variable),
            (r"\.(?:[bsu](?:8|16|32|64|128)|b?f16(?:x2)?|[ft]f?(?:32|64)|pred|b1024)(?!\w)", Keyword.Type),
            (r"\.[A-Za-z_]\w*(?:(?:\.|::)\w+)*", Keyword.Declaration),
            (r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}", Number.Float),
            (r"0[xX][0-9a-fA-F]+U?", Number.Hex),
            FLOAT,
            (r"\d+U?", Number.Integer),
            (r"[a-z]\w*(?:(?:\.|::)\w+)+|(?:bra|brkpt|call|exit|nop|ret|trap)(?![\w$])", Name.Function),
            (r"[$A-Za-z_][\w$]*", Name),
            (r"[-+*/=!:&|~?^@]", Operator),
            (r"[][(){}<>,;]", Punctuation),
        ]
    }  # fmt: skip

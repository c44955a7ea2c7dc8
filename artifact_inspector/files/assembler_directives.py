"""Refuse assembler directives that open files or repeat code, before a text of a cache reaches a tool.

LLVM's assembler and other assemblers read files with `.include` and `.incbin`, and expand `.rept 300000000`
until memory runs out. No compiler writes these directives into a kernel. Triton's inline assembly can hold
any of them, and reaches LLVM's assembler for AMD and ptxas for NVIDIA.

Source: llvm/lib/MC/MCParser/AsmParser.cpp, `initializeDirectiveKindMap`; LLVM language reference, "Inline
Assembler Expressions" (`$(a|b$)`, `${0:modifier}`); mlir/lib/AsmParser/Token.cpp, `getStringValue`.
"""

from __future__ import annotations

import re

from artifact_inspector.errors import CacheError

MOST_REPEATS = 4096
"""Largest operand of a directive that repeats code or fills memory."""
_ALWAYS = "include|incbin|macro|irpc?|altmacro|secure_log_unique|load|dump"
_REPEATING = r"rept|rep|fill|space|skip|zero|dcb(?:\.\w)?|ds(?:\.\w)?"
_DIRECTIVE = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    rf"|\.(?P<always>{_ALWAYS})(?![\w.$])"
    rf"|\.(?P<repeating>{_REPEATING})(?![\w.$])[ \t]*(?P<count>[^\s,;]*)"
    # an operand or an alternative of LLVM could complete the name of a directive
    r"|(?P<spliced>\.[a-z_]*\$[({0-9]|\$\()",
    re.IGNORECASE | re.DOTALL,
)
# without the closing quote too: a search for it from each of many quotes takes quadratic time
_STRING = re.compile(r'(?P<location>\bloc\(\s*)?"(?P<text>(?:\\.|[^"\\\n])*)"?')
_ESCAPE = re.compile(r'\\([0-9A-Fa-f]{2}|[nt"\\])')
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def refuse_directives(text: str, subject: str) -> None:
    """Raise for the first directive of an assembly text that opens files or repeats code.

    Args:
        subject: what the text belongs to, for the message.

    Raises:
        CacheError: the text holds such a directive outside of comments.
    """
    for match in _DIRECTIVE.finditer(text):
        name = match["always"] or match["repeating"]
        if match["spliced"]:
            problem = f"splices {match['spliced']!r} into its inline assembly"
        elif match["always"] or (name and not _is_small(match["count"])):
            problem = f"holds the assembler directive .{name.lower()}"
        else:
            continue
        raise CacheError(
            f"{subject} is not passed to a compiler: it {problem}, which can open files or exhaust memory.",
            "Inspect it without compiling it again.",
        )


def refuse_inline_directives(mlir: str, subject: str) -> None:
    """Raise for such a directive in any string of an MLIR text; names of source files are passed over.

    Raises:
        CacheError: a string holds such a directive.
    """
    for match in _STRING.finditer(mlir):
        if match["location"] is None:
            text = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1]) or chr(int(escape[1], 16)), match["text"])
            refuse_directives(text, subject)


def _is_small(count: str) -> bool:
    return count.isascii() and count.isdecimal() and len(count) < 6 and int(count) <= MOST_REPEATS

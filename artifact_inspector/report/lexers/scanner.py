"""The lexer of each stage, and a scanner that splits a text into its tokens with one pattern, in a third of the time.

Pygments tries the rules of a lexer one by one, in Python, at every token. These lexers have one state, so their rules
can be joined into one pattern that matches the same tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from pygments.lexer import Lexer, words
from pygments.token import Error

from artifact_inspector.model import Stage
from artifact_inspector.report.lexers.amdgcn import AmdgcnLexer
from artifact_inspector.report.lexers.llvm import TritonLlvmLexer
from artifact_inspector.report.lexers.mlir import TritonIrLexer
from artifact_inspector.report.lexers.ptx import TritonPtxLexer
from artifact_inspector.report.lexers.sass import SassLexer

LEXERS = {
    Stage.TTIR: TritonIrLexer,
    Stage.TTGIR: TritonIrLexer,
    Stage.LLIR: TritonLlvmLexer,
    Stage.PTX: TritonPtxLexer,
    Stage.SASS: SassLexer,
    Stage.AMDGCN: AmdgcnLexer,
}


def lexer_for(stage: Stage) -> Lexer:
    """The lexer of a stage; it keeps blank lines at both ends of the text."""
    lexer: Lexer = LEXERS[stage](stripnl=False, ensurenl=False)
    return lexer


def scan(stage: Stage, text: str) -> Iterator[tuple[Any, str]]:
    """The tokens of a file of a stage, in order; concatenated, they are the text."""
    pattern, tokens = _scanner(stage)
    at = 0
    for token_match in pattern.finditer(text):
        if token_match.start() != at:
            yield from ((Error, character) for character in text[at : token_match.start()])
        at = token_match.end()
        yield tokens[token_match.lastindex or 0], token_match[0]
    yield from ((Error, character) for character in text[at:])


@cache
def _scanner(stage: Stage) -> tuple[re.Pattern[str], dict[int, Any]]:
    """The rules of a lexer as one pattern, and the token type of each group."""
    rules, tokens, group = [], {}, 1
    for rule, token in LEXERS[stage].tokens["root"]:
        pattern_text = rule.get() if isinstance(rule, words) else rule  # type: ignore[no-untyped-call,unused-ignore]
        rules.append(f"({pattern_text})")
        tokens[group] = token
        group += 1 + re.compile(pattern_text).groups
    return re.compile("|".join(rules), LEXERS[stage].flags), tokens

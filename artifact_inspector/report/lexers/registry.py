"""The lexer of each stage."""

from __future__ import annotations

from pygments.lexer import Lexer

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

"""Parse the IR dumps that a compiler prints, one for each pass, as a stream.

Source:
    MLIR writes `// -----// IR Dump Before NAME (argument) ('op' operation: @symbol) //----- //`, newer ones
    `NAME: argument{options}`: mlir/lib/Pass/IRPrinting.cpp. Triton enables it before every pass
    (`MLIR_ENABLE_DUMP`): python/src/ir.cc.
    LLVM writes `; *** IR Dump After NAME on SCOPE ***` (llvm/lib/Passes/StandardInstrumentations.cpp), its
    code generator `*** IR Dump After TITLE (argument) ***`, with `# ` before machine code
    (llvm/lib/IR/LegacyPassManager.cpp, llvm/lib/CodeGen/MachineFunctionPass.cpp). Triton enables it after
    every pass (`LLVM_IR_ENABLE_DUMP`): python/src/llvm.cc.

Cannot read: other output of a pass between two dumps, which is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple


class Language(Enum):
    """Language of a dump."""

    MLIR = "MLIR"
    LLVM = "LLVM IR"
    MACHINE = "machine code of LLVM"


class Dump(NamedTuple):
    """One dump, and its pass."""

    name: str
    """Pass name as the compiler prints it: `TritonAMDGPUReorderInstructions`, `SROAPass`, `Code sinking`."""
    argument: str | None
    """Pass name in pipelines: `tritonamdgpu-reorder-instructions`; None if the compiler does not print it."""
    is_before: bool
    """True for a dump before the pass, False for one after it."""
    language: Language
    scope: str
    """Symbol of the function that the pass runs on; empty for the whole module."""
    line: int
    """1-based line of the header in the compiler's output."""
    text: str


_MLIR = re.compile(
    r"// -----// IR Dump (?P<when>Before|After) (?P<name>[^\s:(]+)"
    r"(?:: (?P<new>[\w.-]+)(?![\w.-]).*?| \((?P<old>[^()]*)\))?"
    r" \('(?P<op>[^']*)' operation(?:: @(?P<symbol>[^)]*))?\)"
)
_LLVM = re.compile(
    r"(?:; )?\*\*\* IR Dump (?P<when>Before|After) (?P<name>\S(?:(?! on ).)*) on (?P<scope>.+?) \*\*\*"
)
_CODE = re.compile(
    r"(?P<machine># )?\*\*\* IR Dump (?P<when>Before|After) (?P<name>.+?) \((?P<argument>[\w.-]+)\) \*\*\*"
)
_NOISE = re.compile(
    r"Running (?:pass|analysis)|Skipping pass|Invalidating analysis|Clearing all analysis|===-{20}"
    r"|\s*Pass Arguments:"
)
_MARK = "IR Dump "


def read_dumps(lines: Iterable[str]) -> Iterator[Dump]:
    """Yield the dumps in the order in which they were written, with one at a time in memory."""
    found: Dump | None = None
    text: list[str] = []
    ended = False
    for number, line in enumerate(lines, 1):
        head = _head(line, number) if _MARK in line else None
        if head is not None:
            if found is not None:
                yield found._replace(text="".join(text))
            found, text, ended = head, [], False
        elif found is not None and not ended:
            # LLVM prints messages about its passes between the dumps
            if _NOISE.match(line):
                ended = found.language is not Language.MLIR
            else:
                text.append(line)
    if found is not None:
        yield found._replace(text="".join(text))


def _head(line: str, number: int) -> Dump | None:
    match = _MLIR.match(line)
    if match is not None:
        argument = match["new"] or match["old"]
        return _dump(match, argument, Language.MLIR, match["symbol"] or "", number)
    match = _LLVM.match(line)
    if match is not None:
        scope = match["scope"].strip("()")
        return _dump(match, None, Language.LLVM, "" if scope == "[module]" else scope, number)
    match = _CODE.match(line)
    if match is None:
        return None
    language = Language.MACHINE if match["machine"] else Language.LLVM
    return _dump(match, match["argument"], language, "", number)


def _dump(match: re.Match[str], argument: str | None, language: Language, scope: str, number: int) -> Dump:
    return Dump(match["name"], argument, match["when"] == "Before", language, scope, number, "")

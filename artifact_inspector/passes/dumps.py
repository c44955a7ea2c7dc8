"""Parse the IR dumps and the pass durations that a compiler prints.

Source:
    MLIR writes `// -----// IR Dump Before NAME (argument) ('op' operation: @symbol) //----- //`, newer ones
    `NAME: argument{options}`: mlir/lib/Pass/IRPrinting.cpp. Triton enables it before every pass
    (`MLIR_ENABLE_DUMP`): python/src/ir.cc.
    LLVM writes `; *** IR Dump After NAME on SCOPE ***` (llvm/lib/Passes/StandardInstrumentations.cpp), its
    code generator `*** IR Dump After TITLE (argument) ***`, with `# ` before machine code
    (llvm/lib/IR/LegacyPassManager.cpp, llvm/lib/CodeGen/MachineFunctionPass.cpp). Triton enables it after
    every pass (`LLVM_IR_ENABLE_DUMP`): python/src/llvm.cc.
    mlir/lib/Support/Timing.cpp prints a tree of passes in the order in which they ran (`MLIR_ENABLE_TIMING`);
    llvm/lib/Support/Timer.cpp prints the passes of the code generator, summed by name (`LLVM_ENABLE_TIMING`).

Cannot read: other output of a pass between two dumps, which is skipped; LLVM's middle end prints no times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import Enum
from typing import NamedTuple


class DumpLanguage(Enum):
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
    language: DumpLanguage
    scope: str
    """Symbol of the function that the pass runs on; empty for the whole module."""
    line: int
    """1-based line of the header in the compiler's output."""
    text: str


_MLIR_HEADER = re.compile(
    r"// -----// IR Dump (?P<when>Before|After) (?P<name>[^\s:(]+)"
    r"(?:: (?P<new>[\w.-]+)(?![\w.-]).*?| \((?P<old>[^()]*)\))?"
    r" \('(?P<op>[^']*)' operation(?:: @(?P<symbol>[^)]*))?\)"
)
_LLVM_HEADER = re.compile(
    r"(?:; )?\*\*\* IR Dump (?P<when>Before|After) (?P<name>\S(?:(?! on ).)*) on (?P<scope>.+?) \*\*\*"
)
_CODE_GENERATOR_HEADER = re.compile(
    r"(?P<machine># )?\*\*\* IR Dump (?P<when>Before|After) (?P<name>.+?) \((?P<argument>[\w.-]+)\) \*\*\*"
)
_PASS_MESSAGE = re.compile(
    r"Running (?:pass|analysis)|Skipping pass|Invalidating analysis|Clearing all analysis|===-{20}"
    r"|\s*Pass Arguments:"
)
_HEADER_MARK = "IR Dump "


def read_dumps(lines: Iterable[str]) -> Iterator[Dump]:
    """Yield the dumps in the order in which they were written, with one at a time in memory."""
    current_dump: Dump | None = None
    text: list[str] = []
    is_complete = False
    for number, line in enumerate(lines, 1):
        header = _parse_header(line, number) if _HEADER_MARK in line else None
        if header is not None:
            if current_dump is not None:
                yield current_dump._replace(text="".join(text))
            current_dump, text, is_complete = header, [], False
        elif current_dump is not None and not is_complete:
            # LLVM prints messages about its passes between the dumps
            if _PASS_MESSAGE.match(line):
                is_complete = current_dump.language is not DumpLanguage.MLIR
            else:
                text.append(line)
    if current_dump is not None:
        yield current_dump._replace(text="".join(text))


def _parse_header(line: str, number: int) -> Dump | None:
    if match := _MLIR_HEADER.match(line):
        argument, language, scope = match["new"] or match["old"], DumpLanguage.MLIR, match["symbol"] or ""
    elif match := _LLVM_HEADER.match(line):
        argument, language, scope = None, DumpLanguage.LLVM, match["scope"].strip("()")
        scope = "" if scope == "[module]" else scope
    elif match := _CODE_GENERATOR_HEADER.match(line):
        language = DumpLanguage.MACHINE if match["machine"] else DumpLanguage.LLVM
        argument, scope = match["argument"], ""
    else:
        return None
    return Dump(match["name"], argument, match["when"] == "Before", language, scope, number, "")


_MLIR_TIME = re.compile(r"\s+(?P<seconds>\d{1,9}\.\d{1,9}) \([ \d.]+%\)  (?P<indent> *)(?P<name>[^\s('][^\s]*)$")
_LLVM_TIME = re.compile(r"(?:\s+\d+\.\d+ \([ \d.]+%\))*\s+(?P<seconds>\d{1,9}\.\d{1,9}) \([ \d.]+%\)  (?P<name>\S.*)$")
_TITLE = re.compile(r"Pass execution timing report|Execution time report")
_NOT_PASSES = frozenset({"Total", "Rest"})


class PassTimes:
    """Durations of passes in seconds: MLIR passes one by one in order, code generator passes by name."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._mlir_times: list[tuple[str, float]] = []
        self._llvm_times: dict[str, float] = {}
        is_llvm = False
        for line in lines:
            title = _TITLE.search(line)
            if title is not None:
                is_llvm = title[0].startswith("Pass")
                continue
            match = (_LLVM_TIME if is_llvm else _MLIR_TIME).match(line)
            if match is None or match["name"] in _NOT_PASSES:
                continue
            name, seconds = match["name"].strip(), float(match["seconds"])
            if is_llvm:
                self._llvm_times[name] = self._llvm_times.get(name, 0.0) + seconds
            else:
                self._mlir_times.append((name, seconds))

    def mlir_seconds(self, names: Sequence[str]) -> list[float | None]:
        """Durations in seconds of the passes with the given names, in order; None for those without a time.

        A pass that runs on several functions has a dump for each but one time, which the first dump gets.
        """
        timed = [name for name, _ in self._mlir_times]
        seconds_of_pass: list[float | None] = [None] * len(names)
        for block in SequenceMatcher(None, names, timed, autojunk=False).get_matching_blocks():
            for offset in range(block.size):
                seconds_of_pass[block.a + offset] = self._mlir_times[block.b + offset][1]
        return seconds_of_pass

    def total_seconds(self, name: str) -> float | None:
        """Total seconds of all runs of a code generator pass."""
        return self._llvm_times.get(name)

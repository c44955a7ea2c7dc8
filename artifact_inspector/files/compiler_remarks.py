"""Compiler diagnostics: Triton's remarks, MLIR's warnings, ptxas's advisories.

Read from `KERNEL.remarks`, which `inspect-kernel compile` writes beside a kernel. It holds MLIR's output with
`MLIR_ENABLE_DIAGNOSTICS=warnings,remarks` (`file:line:column: remark: …`, the program line, its notes), and the output
of `ptxas -v`. Other lines are ignored: the sizes that ptxas lists are read from the binary.

Source: llvm/lib/Support/SourceMgr.cpp, `SMDiagnostic::print`; mlir/lib/IR/Diagnostics.cpp,
    `SourceMgrDiagnosticHandler`; ptxas of CUDA 12 and 13 (`info : (C7511) Potential Performance Loss: …`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import PurePath

from artifact_inspector.model import CompilerTool, RemarkKind
from artifact_inspector.model.text import parse_integer

_LOCATED = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>\d+):\d+: (?P<kind>remark|warning|error|note): (?P<text>.*)")
_UNLOCATED = re.compile(r"(?:loc\([^)]*\)|<unknown>:0): (?P<kind>remark|warning|error|note): (?P<text>.*)")
_PTXAS = re.compile(r"ptxas(?:-\w+)? (?P<kind>info|warning|error) *: (?:\((?P<code>C\d+)\) )?(?P<text>.*)")
_SPILLS = re.compile(r"\s*\d+ bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads")
_PTX_LINE = re.compile(r" in line (\d+)$")
_FUNCTION = re.compile(r" in the function '[^']*'")


@dataclass(frozen=True, slots=True)
class CompilerRemark:
    """One diagnostic of a compiler."""

    tool: CompilerTool
    """`triton` (including MLIR and LLVM) or `ptxas`."""
    kind: RemarkKind
    """`remark`, `warning`, `error`, or `advisory`: ptxas messages with a code, or about a performance loss."""
    message: str
    code: str | None = None
    """ptxas's own code, like `C7511`."""
    source: str | None = None
    """Line of the user's code, `file.py:line`."""
    called_from: tuple[str, ...] = ()
    """Call sites of the function that contains `source`, innermost first."""
    notes: tuple[str, ...] = ()
    ptx_line: int | None = None
    count: int = 1
    """Number of identical diagnostics."""


def parse_remarks(text: str) -> tuple[CompilerRemark, ...]:
    """The diagnostics in a file, in order; duplicates are merged.

    Example:
        >>> parse_remarks("ptxas warning : Too many maxnreg specified, will be ignored")[0].kind.value
        'warning'
    """
    remarks: list[CompilerRemark] = []
    for line in text.splitlines():
        if match := _PTXAS.fullmatch(line):
            remarks += _ptxas_remarks(match)
        elif match := _SPILLS.fullmatch(line):
            stores, loads = parse_integer(match["stores"]), parse_integer(match["loads"])
            if stores is not None and loads is not None and stores + loads > 0:
                message = f"spills: {stores} bytes of stores, {loads} bytes of loads"
                remarks.append(CompilerRemark(CompilerTool.PTXAS, RemarkKind.ADVISORY, message))
        elif match := _LOCATED.fullmatch(line) or _UNLOCATED.fullmatch(line):
            groups = match.groupdict()
            location = f"{PurePath(groups['file']).name}:{groups['line']}" if "file" in groups else None
            if match["kind"] != "note":
                kind, message = RemarkKind(match["kind"]), _strip_warning(match["text"])
                remarks.append(CompilerRemark(CompilerTool.TRITON, kind, message, source=location))
            elif remarks and remarks[-1].tool is CompilerTool.TRITON:
                remark, text = remarks[-1], match["text"]
                if text == "called from":
                    called_from = (*remark.called_from, *([location] if location else []))
                    remarks[-1] = replace(remark, called_from=called_from)
                elif not text.startswith("see current operation"):  # a dump of the operation, which is also in the IR
                    remarks[-1] = replace(remark, notes=(*remark.notes, _strip_warning(text)))
    counts = Counter(remarks)
    return tuple(replace(remark, count=count) for remark, count in counts.items())


def _ptxas_remarks(match: re.Match[str]) -> list[CompilerRemark]:
    text, line = match["text"], _PTX_LINE.search(match["text"])
    if match["kind"] == "info" and match["code"] is None and "Performance Loss" not in text:
        return []
    message = _FUNCTION.sub("", text[: line.start()] if line else text)
    kind = RemarkKind.ADVISORY if match["kind"] == "info" else RemarkKind(match["kind"])
    ptx_line = parse_integer(line[1]) if line else None
    return [CompilerRemark(CompilerTool.PTXAS, kind, message, code=match["code"], ptx_line=ptx_line)]


def _strip_warning(text: str) -> str:
    # Triton's remarks on vector widths have this prefix, although they are not MLIR warnings.
    return text.removeprefix("Warning: ").strip()

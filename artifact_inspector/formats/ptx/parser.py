"""PTX as LLVM's NVPTX back end prints it (PTX ISA 9.0, chapters 4 and 9), Triton 2.0 and later.

Cannot read: see `FORMAT.cannot_read`.
"""

from __future__ import annotations

import re

from artifact_inspector.formats import _nvidia
from artifact_inspector.formats._assembly import BlockExit, LineTableFiles, split_blocks
from artifact_inspector.formats._conditions import PTX
from artifact_inspector.formats._format import TRANSFER_KINDS, Format
from artifact_inspector.formats._problems import NOT_CLOSED, ProblemLog
from artifact_inspector.formats._resource_figures import ptx_figures
from artifact_inspector.formats.ptx.asm_lines import AsmLines
from artifact_inspector.formats.ptx.data_sections import local_bytes, strip_data_sections
from artifact_inspector.formats.ptx.opcodes import OPCODES, kind_of
from artifact_inspector.formats.ptx.operands import NAME, STATEMENT, constant_value, decode
from artifact_inspector.model import Frame, Function, Instruction, Location, MatrixOp, Module, Stage, Transfer
from artifact_inspector.model.kind import EventKind
from artifact_inspector.model.text import SourceText, split_list

__all__ = ["FORMAT", "OPCODES", "parse"]

_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(sm_\w+)", re.M)
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+([\d.]+)", re.M)
_FILE = re.compile(r'\.file[ \t]+(\d{1,9})[ \t]+"([^"\n]*)"')
_NUMBERS = r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})\b"
_LOC = re.compile(rf"\s*\.loc\s+{_NUMBERS}(?:.*?\binlined_at\s+{_NUMBERS})?")
_HEADER = re.compile(r"\.(?:entry|func)\b\s*(?:\([^)]*\)\s*)?([\w$.%]+)\s*(?:\(([^)]*)\))?")
_LIMITS = re.compile(r"\.(reqntid|maxntid|minnctapersm|maxnreg)\s+(\d+(?:\s*,\s*\d+)*)")
_LABEL = re.compile(r"([A-Za-z_$%][\w$.]*)\s*:(?!:)")


_ASM_BEGINS, _ASM_ENDS = "\t// begin inline asm", "\t// end inline asm"
_IN_ASM: Location = (Frame("begin inline asm", 0, 0),)
_AFTER_ASM: Location = (Frame("end inline asm", 0, 0),)
"""Marks for these frequent lines among the lines that change the location."""
_LINE_MARKS = ("$L__tmp", "$L__func", "$L__pack", "$L__info")
_CONTROL = frozenset(("bra", "brx", "ret", "exit", "trap"))


def sniff(text: str) -> bool:
    """True if the text names its version and an `sm_` target, as every PTX module must (PTX ISA 11.1)."""
    head = text[:20_000]
    return _VERSION.search(head) is not None and _TARGET.search(head) is not None


def parse(source: SourceText, stage: Stage) -> Module:
    """The module in a PTX text; what cannot be read is skipped and reported in `problems`.

    Raises:
        ParseError: the text has no function with a body.
    """
    # A carriage return does not end a line here, so line numbers stay those of the file.
    text = source.text.replace("\r", "") if "\r" in source.text else source.text
    text = strip_data_sections(f"\n{text}")[1:].rstrip()
    log = ProblemLog(source)
    parser = _PtxParser(LineTableFiles(_FILE.findall(text), log), log)
    _parse_lines(text.split("\n"), parser)
    local = local_bytes(text, parser.functions)
    for key, match in (("version", _VERSION.search(text)), ("target", _TARGET.search(text))):
        if match is not None:
            parser.attributes[key] = match[1]
    if local is not None:
        parser.attributes["local"] = str(local)
    return log.build_module(
        stage, parser.functions, parser.attributes, lacks="no PTX function with a body",
        remedy="Compile the kernel again: the file is empty, truncated, or not PTX.",
    )  # fmt: skip


def _parse_lines(lines: list[str], parser: _PtxParser) -> None:
    """Process all lines: repeated lines here, all others in the reader."""
    opcodes, locations, append, pending = parser.opcodes, parser.locations, parser.append, parser.pending
    location: Location | None = None
    new, unset = tuple.__new__, ()
    in_asm, after_asm = locations[_ASM_BEGINS], locations[_ASM_ENDS] = _IN_ASM, _AFTER_ASM
    for number, line in enumerate(lines, 1):
        entry = opcodes.get(line.partition(" ")[0])
        if entry is not None and line.find(";") + 1 == len(line) and "  " not in line:
            if pending:
                parser.drop_pending()
            statement = line[:-1].strip().replace("\t", "")
            append(new(Instruction, (number, *entry, location, None, statement, decode)))
            continue
        new_location = locations.get(line, unset)
        if new_location is unset:
            if not line.startswith(_LINE_MARKS):
                parser.parse_line(number, line)
                append, location = parser.append, parser.location
        elif new_location is in_asm or new_location is after_asm:
            parser.mark_inline_asm(begins=new_location is in_asm)
        elif parser.in_asm:
            parser.parse_line(number, line)
        else:
            # LLVM 23 and later count the lines of an inline asm from the line of its call. The call's location is the
            # one before the asm, and continues after it.
            parser.location = location = new_location
    parser.finish()


class _PtxParser:
    """Processes lines that differ from all earlier ones, and keeps the parser state."""

    def __init__(self, paths: LineTableFiles, log: ProblemLog) -> None:
        self.functions: list[Function] = []
        self.attributes: dict[str, str] = {}
        self._log = log
        self.opcodes: dict[str, tuple[str, EventKind]] = {}
        """First word of a plain line, including its indent → its opcode and kind."""
        self.locations: dict[str, Location | None] = {}
        """`.loc` line → its location, for lines that mean the same everywhere."""
        self.location: Location | None = None
        self.in_asm = False
        self.append = list[Instruction]().append
        self.pending: list[str] = []
        """Parts of an unfinished statement over several lines."""
        self._pending_line = 0
        self._open_braces = 0
        """Number of open braces in these parts."""
        self._header: list[str] = []
        self._header_line = 0
        self._declared: dict[str, int] = {}
        """Functions whose bodies must be in the file, with the line of the declaration."""
        self._depth = 0
        self._body: _PtxBody | None = None
        self._loc_parser = _LocParser(paths)

    def parse_line(self, number: int, line: str) -> None:
        code = line.strip()
        if not code or code.startswith(_LINE_MARKS):
            return
        if code.startswith("//"):
            if code.endswith("inline asm"):
                self.mark_inline_asm(begins=code.startswith("// begin"))
            elif self._body is not None and code.startswith("// %bb."):
                self._body.block_names[len(self._body.instructions)] = code[3:].partition(":")[0]
            return
        if self._body is not None and code.startswith(".loc"):
            self._parse_loc(number, line, self._body)
            return
        code = code.partition("//")[0].rstrip()
        at = self._parse_header(number, code) if self._body is None else 0
        if self._body is not None:
            self._parse_statements(number, code, at, line.partition(" ")[0], self._body)

    def mark_inline_asm(self, *, begins: bool) -> None:
        """Inline asm begins or ends here."""
        self.in_asm = begins
        if self._body is not None:
            self._body.asm.record(None)

    def _parse_loc(self, number: int, line: str, body: _PtxBody) -> None:
        if self.in_asm:
            body.asm.record(line)
        else:
            self.location, is_constant = self._loc_parser.parse(number, line)
            if is_constant:
                self.locations[line] = self.location
            if body.location is None:
                body.location = self.location

    def _parse_header(self, number: int, code: str) -> int:
        """Process part of a function's header; returns the start of the body in the line."""
        if not self._header:
            if ".entry" not in code and ".func" not in code:
                return 0
            self._header_line = number
        brace = code.find("{")
        if brace < 0:
            if ";" in code:
                declaration = [*self._header, code]
                match = _HEADER.search(" ".join(declaration))
                if match is not None and not any(".extern" in line or ".entry" in line for line in declaration):
                    self._declared.setdefault(match[1], self._header_line)
                self._header = []
            else:
                self._header.append(code)
            return 0
        header = " ".join(["", *self._header, code[:brace]])
        match = _HEADER.search(header)
        for key, value in _LIMITS.findall(header):
            self.attributes.setdefault(key, value)
        parameters = (match[2] or "").split(",") if match else ()
        names = tuple(text.split()[-1].partition("[")[0] for text in parameters if text.strip())
        self._body = _PtxBody(match[1] if match else "?", self._header_line, names)
        self.append = self._body.instructions.append
        self._header, self._depth, self.location = [], 1, None
        return brace + 1

    def _parse_statements(self, number: int, code: str, at: int, token: str, body: _PtxBody) -> None:
        """Process the statements of a line; `token` is its first word, including the indent."""
        stop = len(code)
        while at < stop:
            if code[at].isspace():
                at += 1
                continue
            if code[at] in "{}" and self._open_braces == 0:
                if code[at] == "}" and self.pending:
                    self.drop_pending()
                if not self.pending:
                    self._depth += 1 if code[at] == "{" else -1
                    at += 1
                    if self._depth:
                        continue
                    self.functions.append(body.build(self._log))
                    self._body, self.in_asm = None, False
                    self.opcodes.clear()
                    return
            label = None if self.pending else _LABEL.match(code, at)
            if label is not None:
                body.add_label(label[1], is_outer=not self.in_asm and self._depth == 1)
                at = label.end()
                continue
            end = code.find(";", at)
            if not self.pending:
                self._pending_line = number
            fragment = code[at : end if end >= 0 else stop]
            self.pending.append(fragment)
            self._open_braces += fragment.count("{") - fragment.count("}")
            if end < 0:
                return
            self._finish_statement(token, body)
            at = end + 1

    def _finish_statement(self, token: str, body: _PtxBody) -> None:
        """Process the pending statement, and cache its first word if the word determines kind and opcode."""
        text = " ".join(" ".join(self.pending).split())
        self.pending.clear()
        self._open_braces = 0
        line, is_outer = self._pending_line, not self.in_asm and self._depth == 1
        if not text or body.is_directive(text):
            return
        match = STATEMENT.match(text)
        if match is None:
            self._log.report(line, f"not a statement: {text[:60]!r}")
        elif body.add(line, text, match, self.location, is_outer=is_outer) and token.strip() == match[2]:
            self.opcodes[token] = (match[2], kind_of(match[2]))

    def drop_pending(self) -> None:
        """Drop the pending statement: another one begins before its end."""
        self._log.report(self._pending_line, "statement without an end")
        self.pending.clear()
        self._open_braces = 0

    def finish(self) -> None:
        """Close a function that has no end; report functions that are only declared."""
        body = self._body
        if body is not None:
            if self.pending:
                self.drop_pending()
            self._log.report_truncation(body.line, f"function {body.name} {NOT_CLOSED}")
            self.functions.append(body.build(self._log))
        for name in self._declared.keys() - {function.name for function in self.functions}:
            self._log.report_missing(self._declared[name], f"the body of function {name}")


class _LocParser:
    """Locations from `.loc` lines; equal locations share one object."""

    def __init__(self, paths: LineTableFiles) -> None:
        self._paths = paths
        self._chains: dict[Location, Location] = {}
        self._inlined: dict[Frame, Location] = {}

    def parse(self, at: int, line: str) -> tuple[Location | None, bool]:
        """The location, and whether the same line always has the same meaning (no `inlined_at`)."""
        match = _LOC.match(line)
        if match is None or int(match[2]) == 0:
            return None, True
        paths = self._paths
        inner = paths.frame(at, match[1], match[2], match[3])
        if match[4] is None:
            chain = paths.chain(at, inner, paths.callers(line.partition("//")[2]))
            return chain and self._chains.setdefault(chain, chain), True
        # Only one level is named. The printer writes the location of an inlined caller before its first use, so the
        # nearest one above has the other levels.
        caller = paths.frame(at, match[4], match[5], match[6])
        chain = paths.chain(at, inner, self._inlined.get(caller, (caller,)))
        if chain is not None:
            chain = self._inlined[inner] = self._chains.setdefault(chain, chain)
        return chain, False


class _PtxBody:
    """A function under construction."""

    def __init__(self, name: str, line: int, arguments: tuple[str, ...]) -> None:
        self.name, self.line, self.arguments = name, line, arguments
        self.location: Location | None = None
        self.instructions: list[Instruction] = []
        self._labels: list[tuple[int, str]] = []
        self._last_label = ""
        self.block_names: dict[int, str] = {}
        """The compiler's names of blocks (`%bb.3`), by their first instruction."""
        self._branch_tables: dict[str, tuple[str, ...]] = {}
        self._exits: dict[int, BlockExit] = {}
        self.asm = AsmLines(self.instructions)

    def add_label(self, name: str, *, is_outer: bool) -> None:
        """Record a label; it `is_outer` unless it is inside inline assembly."""
        if is_outer:
            self._labels.append((len(self.instructions), name))
        self._last_label = name

    def is_directive(self, text: str) -> bool:
        """Process a directive; False for other statements."""
        if text[0] != ".":
            return False
        if text.startswith(".branchtargets"):
            self._branch_tables[self._last_label] = tuple(NAME.findall(text[len(".branchtargets") :]))
        return True

    def add(self, line: int, text: str, match: re.Match[str], location: Location | None, *, is_outer: bool) -> bool:
        """Add a statement; True if every statement with this opcode and without guard is equal in kind."""
        guard, opcode = match[1], match[2]
        base = opcode.partition(".")[0]
        if base in _CONTROL and is_outer:
            names = tuple(NAME.findall(text, match.end()))
            targets = names if base == "bra" else names[-1:] if base == "brx" else ()
            self._exits[len(self.instructions)] = BlockExit(targets, guard is not None)
        self.instructions.append(Instruction(line, opcode, kind_of(opcode), location, guard, text, decode))
        return guard is None and base not in _CONTROL

    def build(self, log: ProblemLog) -> Function:
        exits = {}
        for at, (targets, falls_through) in self._exits.items():
            table = self._branch_tables.get(targets[0], targets) if len(targets) == 1 else targets
            exits[at] = BlockExit(table, falls_through)
        names = {name for exit_ in exits.values() for name in exit_.targets}
        starts = [(at, name) for at, name in self._labels if name.startswith("$L__BB") or name in names]
        titles = {**self.block_names, **dict(reversed(starts))}
        blocks, missing = split_blocks(len(self.instructions), starts, exits, titles, log, self.line)
        for name in sorted({name for _, name in missing}):
            log.report_truncation(self.line, f"no label {name} in function {self.name}")
        return Function(
            self.name, self.line, self.location, self.arguments, tuple(self.instructions), blocks,
            inline_asm_lines=self.asm.differing_lines(),
        )  # fmt: skip


def _transfer(instruction: Instruction, _module: Module) -> Transfer | None:
    if instruction.kind in TRANSFER_KINDS or "expect_tx" in instruction.opcode:
        return _nvidia.transfer_of(instruction.opcode, instruction.text)
    return None


def _matrix(instruction: Instruction, module: Module) -> MatrixOp | None:
    opcode, descriptor = instruction.opcode, None
    if opcode.startswith("tcgen05"):
        operands = split_list(instruction.text[instruction.text.find(opcode) + len(opcode) :])
        index = _nvidia.descriptor_operand(opcode)
        descriptor = constant_value(operands[index], module) if index < len(operands) else None
    return _nvidia.matrix_of(opcode, descriptor)


FORMAT = Format(
    name="PTX", stages=(Stage.PTX,), parse=parse, sniff=sniff,
    wait_of=lambda instruction, _: _nvidia.wait_of(instruction.opcode, instruction.text), transfer=_transfer,
    commit=lambda x: _nvidia.commit_queue(x.opcode) if x.kind is EventKind.COMMIT else None, matrix_of=_matrix,
    accesses_shared=lambda instruction: ".shared" in instruction.opcode, traits=_nvidia.TRAITS.lookup, conditions=PTX,
    figures=ptx_figures,
    cannot_read=(
        "A load or store without a state space (a generic address) counts as global.",
        "Branches and labels inside inline asm do not create blocks or edges.",
        "If two inlined calls share a line of a helper, the nearest preceding caller is used.",
        "The possible targets of an indirect call (`.callprototype`, `.calltargets`).",
        "`trap` ends a block like `exit`; continuing after it in a debugger is ignored.",
    ),
)  # fmt: skip

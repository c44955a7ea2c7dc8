"""PTX as LLVM's NVPTX back end prints it (PTX ISA 9.0, chapters 4 and 9), Triton 2.0 and later.

Cannot read: see `FORMAT.cannot_read`.
"""

from __future__ import annotations

import re

from artifact_inspector.errors import ParseError
from artifact_inspector.formats import _nvidia
from artifact_inspector.formats._assembly import Exit, Paths, cut_blocks
from artifact_inspector.formats._conditions import PTX
from artifact_inspector.formats._faults import UNCLOSED, Faults
from artifact_inspector.formats._figures import ptx_figures
from artifact_inspector.formats._scan import TRANSFERS, Format
from artifact_inspector.formats.ptx.asm_lines import AsmLines
from artifact_inspector.formats.ptx.data import local_bytes, without_sections
from artifact_inspector.formats.ptx.opcodes import OPCODES, kind_of
from artifact_inspector.formats.ptx.operands import IMMEDIATES, NAME, STATEMENT, decode
from artifact_inspector.model import (
    EventKind,
    Frame,
    Function,
    Instruction,
    Location,
    MatrixOp,
    Module,
    Queue,
    Stage,
    Transfer,
)
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
_BEHIND_ASM: Location = (Frame("end inline asm", 0, 0),)
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
    text = without_sections(f"\n{text}")[1:].rstrip()
    faults = Faults(source)
    reader = _Reader(Paths(_FILE.findall(text), faults), faults)
    _read(text.split("\n"), reader)
    functions, attributes = reader.functions, reader.attributes
    if not functions:
        raise ParseError(
            "no PTX function with a body",
            source.span(0),
            "Compile the kernel again: the file is empty, truncated, or not PTX.",
        )
    for key, pattern in (("version", _VERSION), ("target", _TARGET)):
        found = pattern.search(text)
        if found is not None:
            attributes[key] = found[1]
    local = local_bytes(text, functions)
    if local is not None:
        attributes["local"] = str(local)
    return Module(
        stage, source.name, faults.distinct(functions), attributes, faults.problems, is_whole=faults.is_whole
    )


def _read(lines: list[str], reader: _Reader) -> None:
    """Process all lines: repeated lines here, all others in the reader."""
    known, where, append, pending = reader.known, reader.where, reader.append, reader.pending
    location: Location | None = None
    new, unset = tuple.__new__, ()
    in_asm, behind_asm = where[_ASM_BEGINS], where[_ASM_ENDS] = _IN_ASM, _BEHIND_ASM
    for number, line in enumerate(lines, 1):
        entry = known.get(line.partition(" ")[0])
        if entry is not None and line.find(";") + 1 == len(line):
            if pending:
                reader.unfinished()
            statement = line[:-1].strip().replace("\t", "")
            append(new(Instruction, (number, *entry, location, None, statement, decode)))
            continue
        moved = where.get(line, unset)
        if moved is unset:
            if not line.startswith(_LINE_MARKS):
                reader.take(number, line)
                append, location = reader.append, reader.location
        elif moved is in_asm or moved is behind_asm:
            reader.enter_asm(begins=moved is in_asm)
        elif reader.in_asm:
            reader.take(number, line)
        else:
            # LLVM 23 and later count the lines of an inline asm from the line of its call. The call's
            # location is the one before the asm, and continues after it.
            reader.location = location = moved
    reader.finish()


class _Reader:
    """Processes lines that differ from all earlier ones, and keeps the parser state."""

    def __init__(self, paths: Paths, faults: Faults) -> None:
        self.functions: list[Function] = []
        self.attributes: dict[str, str] = {}
        self._faults = faults
        self.known: dict[str, tuple[str, EventKind]] = {}
        """First word of a plain line, including its indent → its opcode and kind."""
        self.where: dict[str, Location | None] = {}
        """`.loc` line → its location, for lines that mean the same everywhere."""
        self.location: Location | None = None
        self.in_asm = False
        self.append = list[Instruction]().append
        self.pending: list[str] = []
        """Parts of an unfinished statement over several lines."""
        self._pending_line = 0
        self._open = 0
        """Number of open braces in these parts."""
        self._header: list[str] = []
        self._header_line = 0
        self._declared: dict[str, int] = {}
        """Functions whose bodies must be in the file, with the line of the declaration."""
        self._depth = 0
        self._body: _Body | None = None
        self._locator = _Locator(paths)

    def take(self, number: int, line: str) -> None:
        """Process a line."""
        code = line.strip()
        if not code or code.startswith(_LINE_MARKS):
            return
        if code.startswith("//"):
            self._comment(code)
            return
        if self._body is not None and code.startswith(".loc"):
            self._locate(number, line, self._body)
            return
        code = code.partition("//")[0].rstrip()
        at = 0
        if self._body is None:
            at = self._begin(number, code)
        if self._body is not None:
            self._statements(number, code, at, line.partition(" ")[0], self._body)

    def _comment(self, code: str) -> None:
        if code.endswith("inline asm"):
            self.enter_asm(begins=code.startswith("// begin"))
        elif self._body is not None and code.startswith("// %bb."):
            self._body.name_block(code[3:].partition(":")[0])

    def enter_asm(self, *, begins: bool) -> None:
        """Inline asm begins or ends here."""
        self.in_asm = begins
        if self._body is not None:
            self._body.asm.locate(None)

    def _locate(self, number: int, line: str, body: _Body) -> None:
        if self.in_asm:
            body.asm.locate(line)
        else:
            self.location, fixed = self._locator.read(number, line)
            if fixed:
                self.where[line] = self.location
            if body.location is None:
                body.location = self.location

    def _begin(self, number: int, code: str) -> int:
        """Process part of a function's header; returns the start of the body in the line."""
        if not self._header:
            if ".entry" not in code and ".func" not in code:
                return 0
            self._header_line = number
        brace = code.find("{")
        if brace < 0:
            if ";" in code:
                self._declare([*self._header, code])
                self._header = []
            else:
                self._header.append(code)
            return 0
        header = " ".join(["", *self._header, code[:brace]])
        found = _HEADER.search(header)
        for key, value in _LIMITS.findall(header):
            self.attributes.setdefault(key, value)
        self._body = _Body(found[1] if found else "?", self._header_line, _parameters(found))
        self.append = self._body.instructions.append
        self._header, self._depth, self.location = [], 1, None
        return brace + 1

    def _declare(self, header: list[str]) -> None:
        found = _HEADER.search(" ".join(header))
        if found is not None and not any(".extern" in part or ".entry" in part for part in header):
            self._declared.setdefault(found[1], self._header_line)

    def _statements(self, number: int, code: str, at: int, word: str, body: _Body) -> None:
        """Process the statements of a line; `word` is its first word, including the indent."""
        stop = len(code)
        while (at := _skip_spaces(code, at)) < stop:
            if code[at] in "{}" and self._open == 0:
                if code[at] == "}" and self.pending:
                    self.unfinished()
                if not self.pending:
                    self._depth += 1 if code[at] == "{" else -1
                    at += 1
                    if self._depth:
                        continue
                    self._end(body)
                    return
            label = None if self.pending else _LABEL.match(code, at)
            if label is not None:
                body.label(label[1], cuts=not self.in_asm and self._depth == 1)
                at = label.end()
                continue
            end = code.find(";", at)
            self._pend(number, code[at : end if end >= 0 else stop])
            if end < 0:
                return
            self._statement(word, body)
            at = end + 1

    def _pend(self, number: int, part: str) -> None:
        if not self.pending:
            self._pending_line = number
        self.pending.append(part)
        self._open += part.count("{") - part.count("}")

    def _statement(self, word: str, body: _Body) -> None:
        """Process the pending statement, and cache its first word if the word determines kind and opcode."""
        text = " ".join(" ".join(self.pending).split())
        self.pending.clear()
        self._open = 0
        line, cuts = self._pending_line, not self.in_asm and self._depth == 1
        if not text or body.is_directive(text):
            return
        found = STATEMENT.match(text)
        if found is None:
            self._faults.tell(line, f"not a statement: {text[:60]!r}")
        elif body.add(line, text, found, self.location, cuts=cuts) and word.strip() == found[2]:
            self.known[word] = (found[2], kind_of(found[2]))

    def unfinished(self) -> None:
        """Drop the pending statement: another one begins before its end."""
        self._faults.tell(self._pending_line, "statement without an end")
        self.pending.clear()
        self._open = 0

    def _end(self, body: _Body) -> None:
        self.functions.append(body.close(self._faults))
        self._body, self.in_asm = None, False
        self.known.clear()

    def finish(self) -> None:
        """Close a function that has no end; report functions that are only declared."""
        body = self._body
        if body is not None:
            if self.pending:
                self.unfinished()
            self._faults.cut_off(body.line, f"function {body.name} {UNCLOSED}")
            self.functions.append(body.close(self._faults))
        for name in self._declared.keys() - {function.name for function in self.functions}:
            self._faults.missing(self._declared[name], f"the body of function {name}")


class _Locator:
    """Locations from `.loc` lines; equal locations share one object."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._chains: dict[Location, Location] = {}
        self._inlined: dict[Frame, Location] = {}

    def read(self, at: int, line: str) -> tuple[Location | None, bool]:
        """The location, and whether the same line always has the same meaning (no `inlined_at`)."""
        found = _LOC.match(line)
        if found is None or int(found[2]) == 0:
            return None, True
        paths = self._paths
        inner = paths.frame(at, found[1], found[2], found[3])
        if found[4] is None:
            chain = paths.chain(at, inner, paths.callers(line.partition("//")[2]))
            return chain and self._chains.setdefault(chain, chain), True
        # Only one level is named. The printer writes the location of an inlined caller before its first use,
        # so the nearest one above has the other levels.
        caller = paths.frame(at, found[4], found[5], found[6])
        chain = paths.chain(at, inner, self._inlined.get(caller, (caller,)))
        if chain is not None:
            chain = self._inlined[inner] = self._chains.setdefault(chain, chain)
        return chain, False


class _Body:
    """A function under construction."""

    def __init__(self, name: str, line: int, arguments: tuple[str, ...]) -> None:
        self.name, self.line, self.arguments = name, line, arguments
        self.location: Location | None = None
        self.instructions: list[Instruction] = []
        self._labels: list[tuple[int, str]] = []
        self._last_label = ""
        self._block_names: dict[int, str] = {}
        """The compiler's names of blocks (`%bb.3`), by their first instruction."""
        self._tables: dict[str, tuple[str, ...]] = {}
        self._exits: dict[int, Exit] = {}
        self.asm = AsmLines(self.instructions)

    def name_block(self, name: str) -> None:
        """Record the compiler's name of the block that starts here."""
        self._block_names[len(self.instructions)] = name

    def label(self, name: str, *, cuts: bool) -> None:
        """Record a label; it `cuts` unless it is inside inline assembly."""
        if cuts:
            self._labels.append((len(self.instructions), name))
        self._last_label = name

    def is_directive(self, text: str) -> bool:
        """Process a directive; False for other statements."""
        if text[0] != ".":
            return False
        if text.startswith(".branchtargets"):
            self._tables[self._last_label] = tuple(NAME.findall(text[len(".branchtargets") :]))
        return True

    def add(
        self, line: int, text: str, found: re.Match[str], location: Location | None, *, cuts: bool
    ) -> bool:
        """Add a statement; True if every statement with this opcode and without guard is equal in kind."""
        guard, opcode = found[1], found[2]
        base = opcode.partition(".")[0]
        if base in _CONTROL and cuts:
            names = tuple(NAME.findall(text, found.end()))
            targets = names if base == "bra" else names[-1:] if base == "brx" else ()
            self._exits[len(self.instructions)] = Exit(targets, guard is not None)
        self.instructions.append(Instruction(line, opcode, kind_of(opcode), location, guard, text, decode))
        return guard is None and base not in _CONTROL

    def _through_table(self, found: Exit) -> Exit:
        if len(found.targets) == 1 and found.targets[0] in self._tables:
            return Exit(self._tables[found.targets[0]], found.falls)
        return found

    def close(self, faults: Faults) -> Function:
        """The function with its basic blocks."""
        exits = {at: self._through_table(found) for at, found in self._exits.items()}
        wanted = {name for found in exits.values() for name in found.targets}
        marks = [(at, name) for at, name in self._labels if name.startswith("$L__BB") or name in wanted]
        titles = {**self._block_names, **dict(reversed(marks))}
        blocks, missing = cut_blocks(len(self.instructions), marks, exits, titles, faults, self.line)
        for name in sorted({name for _, name in missing}):
            faults.cut_off(self.line, f"no label {name} in function {self.name}")
        return Function(
            self.name,
            self.line,
            self.location,
            self.arguments,
            tuple(self.instructions),
            blocks,
            asm_lines=self.asm.counted_on(),
        )


def _skip_spaces(code: str, at: int) -> int:
    while code[at : at + 1].isspace():
        at += 1
    return at


def _parameters(header: re.Match[str] | None) -> tuple[str, ...]:
    if header is None or not (header[2] or "").strip():
        return ()
    return tuple(part.split()[-1].partition("[")[0] for part in header[2].split(",") if part.strip())


def _transfer(instruction: Instruction, _module: Module) -> Transfer | None:
    if instruction.kind not in TRANSFERS and "expect_tx" not in instruction.opcode:
        return None
    return _nvidia.transfer_of(instruction.opcode, instruction.text)


def _commit(instruction: Instruction) -> Queue | None:
    return _nvidia.commit_queue(instruction.opcode) if instruction.kind is EventKind.COMMIT else None


def _matrix(instruction: Instruction, module: Module) -> MatrixOp | None:
    opcode, descriptor = instruction.opcode, None
    if opcode.startswith("tcgen05"):
        operands = split_list(instruction.text[instruction.text.find(opcode) + len(opcode) :])
        place = _nvidia.descriptor_operand(opcode)
        descriptor = IMMEDIATES.value(operands[place], module) if place < len(operands) else None
    return _nvidia.matrix_of(opcode, descriptor)


FORMAT = Format(
    name="PTX",
    stages=(Stage.PTX,),
    parse=parse,
    sniff=sniff,
    wait_of=lambda instruction, _: _nvidia.wait_of(instruction.opcode, instruction.text),
    transfer=_transfer,
    commit=_commit,
    matrix_of=_matrix,
    in_shared=lambda instruction: ".shared" in instruction.opcode,
    traits=_nvidia.TRAITS.of,
    conditions=PTX,
    figures=ptx_figures,
    cannot_read=(
        "A load or store without a state space (a generic address) counts as global.",
        "Branches and labels inside inline asm do not create blocks or edges.",
        "If two inlined calls share a line of a helper, the nearest preceding caller is used.",
        "The possible targets of an indirect call (`.callprototype`, `.calltargets`).",
        "`trap` ends a block like `exit`; continuing after it in a debugger is ignored.",
    ),
)

"""SASS, the machine code of NVIDIA GPUs from Volta on, as printed by NVIDIA's disassemblers.

Reads the text of `nvdisasm` (with or without line marks and encodings) and its JSON, the text of `cuobjdump -sass`, and
the `.sass` of Triton's dump directory (triton/tools/disasm.py).

Cannot read: see `FORMAT.cannot_read`.
"""

from __future__ import annotations

import re

from artifact_inspector.formats._assembly import BlockExit, split_blocks
from artifact_inspector.formats._conditions import SASS
from artifact_inspector.formats._format import TRANSFER_KINDS, Format
from artifact_inspector.formats._problems import NOT_CLOSED, ProblemLog
from artifact_inspector.formats.sass.instructions import (
    TRAITS,
    commit_queue,
    matrix_of,
    parse_dumped_control,
    read_control,
    transfer_of,
    wait_of,
)
from artifact_inspector.formats.sass.json_listing import listing_from_json
from artifact_inspector.formats.sass.opcodes import OPCODES, kind_by_operands, kind_of
from artifact_inspector.formats.sass.operands import decode
from artifact_inspector.model import ControlInfo, EventKind, Frame, Instruction, Location, RegisterBank, Stage
from artifact_inspector.model.module import Function, Module
from artifact_inspector.model.text import SourceText

__all__ = ["FORMAT", "OPCODES", "parse"]

_TARGET = re.compile(r"^\t\.target\t(sm_\w+)|\bEF_CUDA_(SM\d+)\b|^\tcode for (sm_\w+)", re.M)
_SNIFF = re.compile(r'^\t\.headerflags\t@"|^\tcode for sm_\w+$|^[ \t]*/\*0000\*/[ \t]+@?!?[A-Z]|^Function:\S+$', re.M)
_STATEMENT = r"((?:@(!?U?P\w+)\s+)?([A-Z][\w.:]*)(?![\w.:])[^;]*);"
_INSTRUCTION = re.compile(rf"/\*([0-9a-f]{{4,}})\*/\s+{_STATEMENT}")
_SECOND_WORD = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
_DUMPED = re.compile(rf"(\d\d|--):([-\d]):([-\d]):([-Y]):([0-9a-f])\t{_STATEMENT}")
_LABEL = re.compile(r"([.$\w][\w.$@]*):\s*$")
_SYMBOL = re.compile(r"\s*\.type\s+(\S+),@function")
_SIZE = re.compile(r"\s*\.size\s+([^\s,]+),\((\S+) - \S+\)")
_HEADING = re.compile(r"\s*Function ?: ?(\S+)\s*$")
_MARK = re.compile(r'\s*//## File "(.*?)", line (\d{1,9})(?: inlined at "(.*?)", line (\d{1,9}))?')
_TARGETS = re.compile(r"`\(([^)`]*)\)|(?<![\w.$])(0x[0-9a-f]+|LBB\d+)(?![\w.])")
_TABLE = re.compile(r'\(\*"BRANCH_TARGETS ([^"]*)"\*\)')

_WORD_BYTES = 16
_FALSE_GUARDS = frozenset(("!PT", "!UPT"))
_JUMPS = frozenset(("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "KILL", "RTT"))
_EXITS = frozenset(("EXIT", "RET", "KILL", "RTT"))

_new = tuple.__new__


def sniff(text: str) -> bool:
    """True if the text has a heading or a first instruction in a disassembler's format."""
    return _SNIFF.search(text[:20_000]) is not None


def parse(source: SourceText, stage: Stage) -> Module:
    """The module in a disassembly; what cannot be read is skipped and reported in `problems`.

    Raises:
        ParseError: the text has no instruction.
    """
    text = source.text.replace("\r", "") if "\r" in source.text else source.text
    log = ProblemLog(source)
    parser = _SassParser(log)
    instruction, parse_instruction = _INSTRUCTION.match, parser.parse_instruction
    for number, line in enumerate(text.split("\n"), 1):
        code = line.lstrip()
        if code.startswith("/* 0x") and (match := _SECOND_WORD.match(code)) is not None:
            parser.control(match[1])
        elif (match := instruction(code)) is not None:
            parse_instruction(number, *match.groups())
        else:
            parser.parse_other_line(number, line, code)
    attributes = {}
    target = _TARGET.search(text)
    if target is not None:
        attributes["target"] = target[1] or target[3] or f"sm_{target[2].removeprefix('SM')}"
    return log.build_module(
        stage, parser.finish(), attributes, lacks="no SASS instruction",
        remedy="Disassemble the cubin again: the file is empty, truncated, or not from nvdisasm or cuobjdump.",
    )  # fmt: skip


class _SassParser:
    """Processes lines, and keeps the parser state."""

    def __init__(self, log: ProblemLog) -> None:
        self._log = log
        self._body = _SassBody("?", 1)
        self._bodies: list[_SassBody] = []
        self._symbols: set[str] = set()
        """Names of functions."""
        self._end_labels: dict[str, str] = {}
        """Function → the label after its last instruction."""
        self._labels: set[str] = set()
        self._controls: dict[str, ControlInfo] = {}
        """Control codes by their hexadecimal digits: few distinct ones."""
        self._chains: dict[tuple[str, ...], Location] = {}
        self._marks: list[str] = []
        """Line marks before the next instruction."""
        self._location: Location | None = None

    def parse_instruction(self, number: int, address: str, text: str, guard: str | None, opcode: str) -> None:
        if self._marks:
            key = tuple(self._marks)
            if key not in self._chains:
                self._chains[key] = _inline_chain(self._marks)
            self._location, self._marks = self._chains[key], []
        self._body.add(number, self._location, address, text, guard, opcode)

    def parse_other_line(self, number: int, line: str, code: str) -> None:
        """Process any other line; `code` is the line without indent."""
        if (match := _MARK.match(line)) is not None:
            self._marks.append(line)
        elif (match := _DUMPED.match(line)) is not None:
            self._body.controls.append(parse_dumped_control(*match.groups()[:5]))
            address = f"{len(self._body.instructions) * _WORD_BYTES:x}"
            self._body.add(number, None, address, *match.groups()[5:])
        elif (match := _LABEL.match(line)) is not None:
            self._parse_label(number, match[1])
        elif (match := _HEADING.match(line)) is not None:
            self._begin_function(number, match[1])
        elif (match := _SYMBOL.match(line)) is not None:
            self._symbols.add(match[1])
        elif (match := _SIZE.match(line)) is not None:
            self._end_labels[match[1]] = match[2]
        elif code.startswith("/*"):
            self._log.report(number, f"not an instruction: {line.strip()[:60]!r}")

    def control(self, encoding: str) -> None:
        """Process the second word of the last instruction."""
        digits = encoding[:6]
        control = self._controls.get(digits)
        if control is None:
            control = self._controls[digits] = read_control(int(encoding, 16))
        self._body.controls.append(control)

    def _parse_label(self, number: int, name: str) -> None:
        self._labels.add(name)
        section = name.removeprefix(".text.") if name.startswith(".text.") else None
        if name in self._symbols or (section is not None and section != self._body.name):
            self._begin_function(number, section or name)
        elif section is None:
            self._body.labels.append((len(self._body.instructions), name))

    def _begin_function(self, number: int, name: str) -> None:
        self._body = _SassBody(name, number)
        self._bodies.append(self._body)
        self._location, self._marks = None, []

    def finish(self) -> tuple[Function, ...]:
        """The functions with instructions; a listing without a heading is one function."""
        bodies = [body for body in self._bodies or [self._body] if body.instructions]
        for body in bodies:
            end_label = self._end_labels.get(body.name)
            if body.runs_past_end or (end_label is not None and end_label not in self._labels):
                self._log.report_truncation(body.line, f"function {body.name} {NOT_CLOSED}")
        return tuple(body.build(self._log) for body in bodies)


def _inline_chain(marks: list[str]) -> Location:
    """Frames of the marks before an instruction, innermost first.

    `nvdisasm -gi` prints one mark per frame, with the caller's line for inlined frames. A mark that does not continue
    the previous one starts a new chain.
    """
    frames: list[Frame] = []
    caller: Frame | None = None
    for mark in marks:
        match = _MARK.match(mark)
        assert match is not None
        frame = Frame(match[1], int(match[2]), 0)
        frames = [*frames, frame] if frame == caller else [frame]
        caller = None if match[3] is None else Frame(match[3], int(match[4]), 0)
    return tuple(frames if caller is None else [*frames, caller])


class _SassBody:
    """A function under construction."""

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.instructions: list[Instruction] = []
        self.controls: list[ControlInfo] = []
        self.labels: list[tuple[int, str]] = []
        self.addresses: list[str] = []
        self.jumps: list[int] = []

    def add(
        self, line: int, location: Location | None, address: str, text: str, guard: str | None, opcode: str
    ) -> None:
        text = text.rstrip()
        # An instruction that never runs (`@!PT LDS RZ, [RZ]` on Turing) is padding.
        kind = EventKind.OTHER if guard in _FALSE_GUARDS else kind_of(opcode)
        if kind is None:
            kind = kind_by_operands(opcode, text)
        elif kind is EventKind.BRANCH and (
            opcode.partition(".")[0] in _JUMPS or (opcode.startswith("CALL") and "`(.L" in text)
        ):
            self.jumps.append(len(self.instructions))
        self.addresses.append(address)
        self.instructions.append(_new(Instruction, (line, opcode, kind, location, guard, text, decode)))

    @property
    def runs_past_end(self) -> bool:
        """True if the code continues after its last instruction, which complete code never does."""
        last = next((x for x in reversed(self.instructions) if x.opcode != "NOP"), None)
        return last is None or last.kind is not EventKind.BRANCH

    def _block_exit(self, at: int, log: ProblemLog) -> BlockExit:
        instruction = self.instructions[at]
        jump = _jump_exit(instruction)
        if not jump.targets and instruction.opcode.partition(".")[0] not in _EXITS:
            log.report(instruction.line, f"target of {instruction.opcode} is unknown")
        return jump

    def build(self, log: ProblemLog) -> Function:
        instructions, stop = self.instructions, len(self.instructions)
        labels = [(at, name) for at, name in self.labels if at < stop]
        addresses = {f"0x{address.lstrip('0') or '0'}": at for at, address in enumerate(self.addresses)}
        label_starts = {name: at for at, name in labels} | addresses
        exits = {at: self._block_exit(at, log) for at in self.jumps}
        targets = {name for exit_ in exits.values() for name in exit_.targets} & label_starts.keys()
        starts = [*labels, *((label_starts[name], name) for name in targets)]
        blocks, missing = split_blocks(stop, starts, exits, dict(reversed(labels)), log, self.line)
        for at, name in missing:
            log.report_truncation(instructions[at].line, f"no label {name} in function {self.name}")
        return Function(
            self.name,
            self.line,
            next((x.location for x in instructions if x.location is not None), None),
            (),
            tuple(instructions),
            blocks,
            control_codes=tuple(self.controls) if len(self.controls) == stop else (),
        )


def _jump_exit(instruction: Instruction) -> BlockExit:
    """The targets of a jump, and whether it may fall through."""
    opcode, guard = instruction.opcode, instruction.guard
    operands = instruction.text.partition(opcode)[2]
    base = opcode.partition(".")[0]
    if base in _EXITS:
        names: list[str] = []
    elif base in ("BRA", "JMP", "CALL"):
        names = [match[1] or match[2] for match in _TARGETS.finditer(operands)][-1:]
    else:
        table = _TABLE.search(operands)
        names = [] if table is None else table[1].split(",")
    # `BRA.U UP0, …`, `BRA.DIV UR4, …`, `BRA P0, …`: a condition in addition to the guard.
    conditional = base in ("BRA", "JMP") and "," in operands
    return BlockExit(tuple(names), conditional or base == "CALL" or guard not in (None, "PT", "UPT"))


_BANKS = {
    "R": RegisterBank.VECTOR, "UR": RegisterBank.SCALAR,
    "P": RegisterBank.PREDICATE, "UP": RegisterBank.PREDICATE,
}  # fmt: skip


FORMAT = Format(
    name="SASS", stages=(Stage.SASS,), parse=parse, sniff=sniff, wait_of=wait_of,
    transfer=lambda x, _: transfer_of(x.opcode) if x.kind in TRANSFER_KINDS else None, commit=commit_queue,
    matrix_of=lambda instruction, _: matrix_of(instruction.opcode),
    bank_of=lambda register: _BANKS.get(register.rstrip("0123456789")),
    accesses_shared=lambda instruction: instruction.opcode.startswith("ATOMS"), traits=TRAITS.lookup, conditions=SASS,
    listing=listing_from_json,
    cannot_read=(
        "Code for GPUs before Volta (sm_70), whose instructions have another length and encoding.",
        "Line tables name no column; where the PTX counts lines inside inline assembly (Triton 3.8 and "
        "3.9), they do too.",
        "The target of an indirect branch, unless nvdisasm resolved it; a call creates no edge.",
        "The shape and types of `UTC*MMA`, which are in a descriptor created at run time.",
        "Text without encodings has no control codes: nvdisasm prints them with `-hex`, never in JSON; "
        "cuobjdump always prints them.",
        "`WARPSYNC` and the convergence barriers of a warp (`BSSY`, `BSYNC`) do not count as barriers.",
    ),
)  # fmt: skip

"""SASS, the machine code of NVIDIA's GPUs from Volta on, as NVIDIA's disassemblers print it.

Read are the text of `nvdisasm` (with line marks and encodings or without) and its JSON, the text of
`cuobjdump -sass`, and the `.sass` of Triton's dump directory (triton/tools/disasm.py).

**Source** CUDA Binary Utilities, "Instruction Set Reference", names the opcodes; what they do is NVIDIA's
own knowledge, so each row below was checked against the PTX that it was made from.

Not read: see `FORMAT.cannot_read`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from artifact_inspector.errors import ParseError
from artifact_inspector.formats import _sass, _sass_json, _sass_operands
from artifact_inspector.formats._conditions import SASS
from artifact_inspector.formats._scan import TRANSFERS, Format, OpcodeTable, no_types
from artifact_inspector.model import (
    UNCLOSED,
    BasicBlock,
    Control,
    EventKind,
    Frame,
    Function,
    Instruction,
    Location,
    MatrixOp,
    Module,
    Stage,
    Transfer,
    Wait,
)
from artifact_inspector.model.text import SourceText

_BASES = {
    EventKind.GLOBAL_LOAD: "LD LDG LDGMC TEX TLD TLD4 TXD SULD",
    EventKind.ASYNC_COPY: "LDGSTS UTMALDG UBLKCP",
    EventKind.COMMIT: "LDGDEPBAR ARRIVES UTMACMDFLUSH UTCBAR SYNCS.ARRIVE",
    EventKind.WAIT: "DEPBAR SYNCS.PHASECHK WARPGROUP.DEPBAR",
    EventKind.SHARED_LOAD: "LDS LDSM",
    EventKind.SHARED_STORE: "STS STSM",
    EventKind.MATRIX: """
        HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA
    """,
    EventKind.FLOAT: """
        FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FHADD FHFMA FMNMX FMNMX3 FMUL FMUL2 FMUL32I FSET FSETP
        FSWZADD MUFU HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 VHMNMX DADD DFMA
        DMUL DMNMX DSET DSETP IDP IDP4A QADD4 QFMA4 QMUL4 UFADD UFFMA UFMNMX UFMUL UFSET UFSETP
    """,
    EventKind.BARRIER: "BAR UCGABAR_WAIT",
    EventKind.GLOBAL_STORE: "ST STG SUST UTMASTG UBLKCP.G.S USTGR",
    EventKind.ATOMIC: """
        ATOM ATOMG ATOMS RED REDG REDAS REDS STAS SUATOM SURED UREDGR UTMAREDG UBLKRED
    """,
    EventKind.LOCAL_LOAD: "LDL",
    EventKind.LOCAL_STORE: "STL",
    EventKind.SCALAR_LOAD: "LDC LDCU ULDC",
    EventKind.SHUFFLE: "SHFL VOTE VOTEU MATCH REDUX CREDUX MOVM",
    EventKind.BRANCH: "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL BPT RTT",
    EventKind.INTEGER: """
        BMSK BREV FLO IABS IADD IADD3 IADD32I IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP LOP3
        LOP32I POPC SHF SHL SHR SGXT VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 PLOP3 PSETP QSPC
        UBMSK UBREV UCLEA UFLO UIABS UIADD3 UIMAD UIMNMX UISETP ULEA ULOP ULOP3 ULOP32I UPLOP3 UPOPC UPSETP
        USGXT USHF USHL USHR UVIADD UVIADDMNMX UVIMNMX UVIMNMX3
    """,
    EventKind.MOVE: """
        MOV MOV32I PRMT SEL FSEL P2R R2P S2R S2UR CS2R CS2UR R2UR UR2UP UP2UR UMOV UPRMT USEL UFSEL LEPC
        IMAD.MOV F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP UF2F UF2FP UF2I UF2IP UFRND UI2F UI2FP UI2I UI2IP
        B2R R2B HADD2.F32.CONVERSION HFMA2.CONSTANT
    """,
    EventKind.OTHER: """
        NOP BSSY BSYNC BREAK BMOV WARPSYNC WARPSYNC.COLLECTIVE YIELD NANOSLEEP ELECT ENDCOLLECTIVE WARPGROUP
        WARPGROUPSET SYNCS SYNCS.ARRIVE.TRANS64.A1T0 SYNCS.ARRIVE.TRANS64.ART0 SYNCS.ARRIVE.TRANS64.RED.A1T0
        SYNCS.ARRIVE.TRANS64.RED.ART0 BAR.ARV UCGABAR_ARV MEMBAR FENCE ERRBAR CGAERRBAR CCTL CCTLL CCTLT
        UCCTL UTMACCTL UTMAPF UBLKPF USETMAXREG SETMAXREG UTCATOMSWS UTCCP UTCSHIFT LDT LDTM STT STTM
        UVIRTCOUNT UGETNEXTWORKID UMEMSETS ACQBULK PREEXIT PMTRIG SETCTAID GETLMEMBASE SETLMEMBASE RPCMOV
        TMML TXQ SETSMEMSIZE GENMETADATA SPMETADATA
    """,
}
OPCODES = OpcodeTable(
    (kind, " ".join(f"{base}." for base in bases.split())) for kind, bases in _BASES.items()
)
"""Every prefix ends in a dot, and so does the opcode that is looked up: no name stands for a longer one."""

_TARGET = re.compile(r"^\t\.target\t(sm_\w+)|\bEF_CUDA_(SM\d+)\b|^\tcode for (sm_\w+)", re.M)
_SNIFFED = re.compile(
    r'^\t\.headerflags\t@"|^\tcode for sm_\w+$|^[ \t]*/\*0000\*/[ \t]+@?!?[A-Z]|^Function:\S+$', re.M
)
_STATEMENT = r"((?:@(!?U?P\w+)\s+)?([A-Z][\w.:]*)[^;]*);"
_INSTRUCTION = re.compile(rf"/\*([0-9a-f]{{4,}})\*/\s+{_STATEMENT}")
_SECOND_WORD = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
_DUMPED = re.compile(rf"(\d\d|--):([-\d]):([-\d]):([-Y]):([0-9a-f])\t{_STATEMENT}")
_LABEL = re.compile(r"([.$\w][\w.$@]*):\s*$")
_SYMBOL = re.compile(r"\s*\.type\s+(\S+),@function")
_SIZE = re.compile(r"\s*\.size\s+(\S+),\((\S+) - \S+\)")
_HEADING = re.compile(r"\s*Function ?: ?(\S+)\s*$")
_MARK = re.compile(r'\s*//## File "(.*?)", line (\d{1,9})(?: inlined at "(.*?)", line (\d{1,9}))?')
_TARGETS = re.compile(r"`\(([^)]*)\)|(?<![\w.$])(0x[0-9a-f]+|LBB\d+)(?![\w.])")
_TABLE = re.compile(r'\(\*"BRANCH_TARGETS ([^"]*)"\*\)')

_WORD_BYTES = 16
_NEVER = frozenset(("!PT", "!UPT"))
_JUMPS = frozenset(("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "KILL", "RTT"))
_LEAVES = frozenset(("EXIT", "RET", "KILL", "RTT"))

_new = tuple.__new__


def sniff(text: str) -> bool:
    """True when the text has a heading or a first instruction that only a disassembler writes."""
    return _SNIFFED.search(text[:20_000]) is not None


def parse(source: SourceText, stage: Stage) -> Module:
    """The module in a disassembly; what cannot be read is passed over and named in `problems`.

    Raises:
        ParseError: the text holds no instruction.
    """
    text = source.text.replace("\r", "") if "\r" in source.text else source.text
    functions, problems = _read(text.split("\n"))
    if not functions:
        raise ParseError(
            "no SASS instruction",
            source.span(0),
            "Disassemble the cubin again: the file is empty, cut off, or no text of nvdisasm or cuobjdump.",
        )
    attributes = {}
    target = _TARGET.search(text)
    if target is not None:
        attributes["target"] = target[1] or target[3] or f"sm_{target[2].removeprefix('SM')}"
    return Module(stage, source.name, functions, attributes, tuple(problems))


def _read(lines: list[str]) -> tuple[tuple[Function, ...], list[str]]:
    bodies: list[_Body] = []
    problems: list[str] = []
    symbols: set[str] = set()
    ends: dict[str, str] = {}
    labels: set[str] = set()
    controls: dict[str, Control] = {}  # by the digits that hold them: few differ
    chains: dict[tuple[str, ...], Location] = {}
    marks: list[str] = []
    location: Location | None = None
    body = _Body("?", 1)

    for number, line in enumerate(lines, 1):
        code = line.lstrip()
        found = _SECOND_WORD.match(code)
        if found is not None:
            digits = found[1][:6]
            control = controls.get(digits)
            if control is None:
                control = controls[digits] = _sass.control(int(found[1], 16))
            body.controls.append(control)
            continue
        found = _INSTRUCTION.match(code)
        if found is not None:
            if marks:
                key = tuple(marks)
                if key not in chains:
                    chains[key] = _chain(marks)
                location, marks = chains[key], []
            body.take(number, location, *found.groups())
            continue
        found = _MARK.match(line)
        if found is not None:
            marks.append(line)
            continue
        found = _DUMPED.match(line)
        if found is not None:
            body.controls.append(_sass.dumped_control(*found.groups()[:5]))
            address = f"{len(body.instructions) * _WORD_BYTES:x}"
            body.take(number, None, address, *found.groups()[5:])
            continue
        found = _LABEL.match(line)
        if found is not None:
            name = found[1]
            labels.add(name)
            section = name.removeprefix(".text.") if name.startswith(".text.") else None
            if name in symbols or (section is not None and section != body.name):
                body = _Body(section or name, number)
                bodies.append(body)
                location, marks = None, []
            elif section is None:
                body.labels.append((len(body.instructions), name))
            continue
        found = _HEADING.match(line)
        if found is not None:
            body = _Body(found[1], number)
            bodies.append(body)
            location, marks = None, []
            continue
        found = _SYMBOL.match(line) or _SIZE.match(line)
        if found is not None:
            if found.re is _SYMBOL:
                symbols.add(found[1])
            else:
                ends[found[1]] = found[2]
        elif line.lstrip().startswith("/*"):
            problems.append(f"line {number}: not an instruction: {line.strip()[:60]!r}")
    if not bodies and body.instructions:
        bodies.append(body)
    bodies = [body for body in bodies if body.instructions]
    for body in bodies:
        if body.falls_off or (body.name in ends and ends[body.name] not in labels):
            problems.append(f"line {body.line}: function {body.name} {UNCLOSED}")
    return tuple(body.close(problems) for body in bodies), problems


def _chain(marks: list[str]) -> Location:
    """Frames of the marks in front of an instruction, innermost first.

    `nvdisasm -gi` writes one for each frame, and with it where that is inlined; a mark that the one
    before does not lead to begins anew.
    """
    frames: list[Frame] = []
    caller: Frame | None = None
    for mark in marks:
        found = _MARK.match(mark)
        assert found is not None
        frame = Frame(found[1], int(found[2]), 0)
        frames = [*frames, frame] if frame == caller else [frame]
        caller = None if found[3] is None else Frame(found[3], int(found[4]), 0)
    return tuple(frames if caller is None else [*frames, caller])


@lru_cache(maxsize=4096)
def _kind(opcode: str) -> EventKind | None:
    """The kind of an opcode, None where its operands decide."""
    return None if opcode.startswith(("HADD2.F32", "HFMA2", "FHADD")) else OPCODES.kind(f"{opcode}.")


@lru_cache(maxsize=4096)
def _kind_by_operands(opcode: str, text: str) -> EventKind:
    """Additions of nothing are conversions of a half; a product of nothing and an immediate is a constant."""
    operands = text.partition(opcode)[2].split(",")
    if opcode.startswith("HFMA2"):
        if [operand.strip().lstrip("-") for operand in operands[1:3]] == ["RZ", "RZ"]:
            return OPCODES.kind("HFMA2.CONSTANT.")
    elif any("RZ" in operand for operand in operands[1:]):
        return OPCODES.kind("HADD2.F32.CONVERSION.")
    return OPCODES.kind(f"{opcode}.")


class _Body:
    """A function while it is read."""

    def __init__(self, name: str, line: int) -> None:
        self.name, self.line = name, line
        self.instructions: list[Instruction] = []
        self.controls: list[Control] = []
        self.labels: list[tuple[int, str]] = []
        self.addresses: list[str] = []
        self.jumps: list[int] = []

    def take(
        self, line: int, location: Location | None, address: str, text: str, guard: str | None, opcode: str
    ) -> None:
        """Add an instruction."""
        text = text.rstrip()
        # What never runs (`@!PT LDS RZ, [RZ]` on Turing) only fills a place.
        kind = EventKind.OTHER if guard in _NEVER else _kind(opcode)
        if kind is None:
            kind = _kind_by_operands(opcode, text)
        elif kind is EventKind.BRANCH and opcode.partition(".")[0] in _JUMPS:
            self.jumps.append(len(self.instructions))
        self.addresses.append(address)
        self.instructions.append(
            _new(Instruction, (line, opcode, kind, location, guard, text, _sass_operands.decode))
        )

    @property
    def falls_off(self) -> bool:
        """True when the code runs on behind its last instruction, which real code never does."""
        last = next((x for x in reversed(self.instructions) if x.opcode != "NOP"), None)
        return last is None or last.kind is not EventKind.BRANCH

    def close(self, problems: list[str]) -> Function:
        """The function, cut into blocks."""
        instructions, stop = self.instructions, len(self.instructions)
        marks = [(at, name) for at, name in self.labels if at < stop]
        titles = dict(reversed(marks))
        places = {name: at for at, name in marks}
        places |= {f"0x{address.lstrip('0') or '0'}": at for at, address in enumerate(self.addresses)}
        ends: dict[int, tuple[list[int], bool]] = {}
        for at in self.jumps:
            names, falls = _jump(instructions[at])
            goes = []
            for name in names:
                place = places.get(name)
                if place is None:
                    problems.append(f"line {instructions[at].line}: no label {name} in function {self.name}")
                else:
                    goes.append(place)
            if not names and instructions[at].opcode.partition(".")[0] not in _LEAVES:
                problems.append(
                    f"line {instructions[at].line}: where {instructions[at].opcode} goes is not written"
                )
            ends[at] = goes, falls
        starts = {0, *titles, *(at + 1 for at in ends if at + 1 < stop)}
        starts.update(at for goes, _ in ends.values() for at in goes)
        order = sorted(starts)
        index = {at: place for place, at in enumerate(order)}
        blocks = []
        for place, (start, end) in enumerate(pairwise([*order, stop])):
            goes, falls = ends.get(end - 1, ([], True))
            successors = [index[at] for at in goes]
            if falls and place + 1 < len(order):
                successors.append(place + 1)
            blocks.append(
                BasicBlock(place, titles.get(start, ""), start, end, tuple(dict.fromkeys(successors)))
            )
        return Function(
            self.name,
            self.line,
            next((x.location for x in instructions if x.location is not None), None),
            (),
            tuple(instructions),
            tuple(blocks),
            controls=tuple(self.controls) if len(self.controls) == stop else (),
        )


def _jump(instruction: Instruction) -> tuple[list[str], bool]:
    """Where a jump goes, and whether it may fall through."""
    opcode, guard = instruction.opcode, instruction.guard
    operands = instruction.text.partition(opcode)[2]
    base = opcode.partition(".")[0]
    if base in _LEAVES:
        names = []
    elif base in ("BRA", "JMP"):
        names = [found[1] or found[2] for found in _TARGETS.finditer(operands)][-1:]
    else:
        table = _TABLE.search(operands)
        names = [] if table is None else table[1].split(",")
    # `BRA.U UP0, …`, `BRA.DIV UR4, …`, `BRA P0, …`: a condition beside the guard.
    conditional = base in ("BRA", "JMP") and "," in operands
    return names, conditional or guard not in (None, "PT", "UPT")


def _wait(instruction: Instruction, module: Module) -> Wait | None:
    return _sass.wait_of(instruction, module) if instruction.kind is EventKind.WAIT else None


def _transfer(instruction: Instruction, _module: Module) -> Transfer | None:
    if instruction.kind not in TRANSFERS:
        return None
    return _sass.transfer_of(instruction.opcode)


def _matrix(instruction: Instruction, _module: Module) -> MatrixOp | None:
    return _sass.matrix_of(instruction.opcode) if instruction.kind is EventKind.MATRIX else None


FORMAT = Format(
    name="SASS",
    stages=(Stage.SASS,),
    parse=parse,
    sniff=sniff,
    wait=_wait,
    transfer=_transfer,
    commit=_sass.commit_queue,
    matrix=_matrix,
    types=no_types,
    in_shared=lambda instruction: instruction.opcode.startswith("ATOMS"),
    traits=_sass.TRAITS.of,
    conditions=SASS,
    listing=_sass_json.as_listing,
    cannot_read=(
        "Code for GPUs before Volta (sm_70), whose instructions have another length and form.",
        "Line tables name no column; where the PTX lets lines run on inside inline assembly (Triton 3.8 and "
        "3.9), so do they.",
        "Where an indirect branch goes, unless nvdisasm has followed it; a call makes no edge.",
        "The shape and types of `UTC*MMA`, which stand in a descriptor that is made at run time.",
        "Text without encodings gives no control codes: nvdisasm prints them with `-hex`, in JSON never, "
        "cuobjdump always.",
        "`WARPSYNC` and the convergence barriers of a warp (`BSSY`, `BSYNC`) are no barriers here.",
    ),
)

"""PTX as LLVM's NVPTX back end prints it (PTX ISA 9.0, chapters 4 and 9), Triton 2.0 and later.

The order of modifiers is not fixed (`ld.relaxed.gpu.global.b32`), so the state space of a memory
operation and the type of an arithmetic one are brought to the front before the table is asked.

Not read: see `FORMAT.cannot_read`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from artifact_inspector.errors import ParseError
from artifact_inspector.formats import _nvidia
from artifact_inspector.formats._conditions import PTX
from artifact_inspector.formats._scan import (
    DECODED,
    TRANSFERS,
    Format,
    OpcodeTable,
    frames_of_callers,
    no_types,
)
from artifact_inspector.model import (
    UNCLOSED,
    BasicBlock,
    EventKind,
    Frame,
    Function,
    Instruction,
    Location,
    MatrixOp,
    Module,
    Operands,
    Queue,
    Stage,
    Transfer,
    Wait,
)
from artifact_inspector.model.text import SourceText, split_list

_BY_SPACE = frozenset(("ld", "ldu", "st", "wmma", "multimem"))
_BY_TYPE = frozenset(
    ("add", "sub", "mul", "mad", "fma", "min", "max", "abs", "neg", "div", "rem", "set", "setp", "redux")
)
_FLOAT_ROWS = " ".join(f"{name}.float" for name in sorted(_BY_TYPE))
_INTEGER_ROWS = " ".join(sorted(_BY_TYPE - {"fma", "redux"}))

OPCODES = OpcodeTable(
    {
        EventKind.GLOBAL_LOAD: """
            ld$ ld. ld.global ldu ldu.global tex tld4 suld wmma.load wmma.global.load multimem.ld_reduce
            multimem.global.ld_reduce
        """,
        EventKind.ASYNC_COPY: "cp.async. cp.async.bulk.shared.global",
        EventKind.COMMIT: """
            cp.async.commit_group cp.async.bulk.commit_group cp.async.mbarrier.arrive wgmma.commit_group
            mbarrier.arrive.expect_tx mbarrier.expect_tx tcgen05.commit
        """,
        EventKind.WAIT: """
            cp.async.wait_group cp.async.wait_all cp.async.bulk.wait_group wgmma.wait_group
            mbarrier.try_wait mbarrier.test_wait tcgen05.wait
        """,
        EventKind.SHARED_LOAD: "ld.shared ldmatrix wmma.shared.load",
        EventKind.SHARED_STORE: "st.shared st.bulk stmatrix wmma.shared.store",
        EventKind.MATRIX: "mma wmma.mma wgmma.mma_async tcgen05.mma",
        EventKind.FLOAT: f"""
            {_FLOAT_ROWS} fma rcp sqrt rsqrt ex2 lg2 sin cos tanh copysign testp dp2a dp4a
        """,
        EventKind.BARRIER: "bar. barrier",
        EventKind.GLOBAL_STORE: """
            st$ st. st.global sust wmma.store wmma.global.store multimem.st multimem.global.st
            cp.async.bulk.global.shared
        """,
        EventKind.ATOMIC: """
            atom red. sured cp.reduce.async.bulk st.async st.shared.async st.global.async multimem.red
            multimem.global.red
        """,
        EventKind.LOCAL_LOAD: "ld.local",
        EventKind.LOCAL_STORE: "st.local",
        EventKind.SHUFFLE: "shfl vote match activemask redux movmatrix",
        EventKind.BRANCH: "bra brx call ret exit trap",
        EventKind.INTEGER: f"""
            {_INTEGER_ROWS} addc subc madc mul24 mad24 sad and or xor not cnot lop3 shl shr shf bfe bfi
            bfind bmsk brev clz popc fns szext isspacep mapa getctarank vadd vsub vmad vmin vmax vset vshl
            vshr vabsdiff vavrg
        """,
        EventKind.MOVE: "mov cvt cvta selp slct prmt",
        EventKind.OTHER: """
            ld.param ld.const st.param cp.async.bulk.shared.shared cp.async.bulk.prefetch mbarrier.
            bar.arrive barrier.arrive barrier.cta.arrive barrier.cluster.arrive wgmma.fence tcgen05. fence
            membar griddepcontrol setmaxnreg elect createpolicy prefetch prefetchu discard applypriority
            tensormap clusterlaunchcontrol alloca stacksave stackrestore nanosleep pmevent brkpt txq suq
            istypep
        """,
    }.items()
)

_SPACES = frozenset(("global", "shared", "local", "param", "const"))
_FLOAT_TYPE = re.compile(r"\.(?:f16|f32|f64|bf16|tf32|[eu]\d+m\d+)(?:x\d)?(?=\.|$)")
_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(sm_\w+)", re.M)
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+([\d.]+)", re.M)
# A line break in front finds the starts of lines many times faster than `^`, which is tried at every place.
_SECTION = re.compile(r"\n[ \t]*\.section\b[^{}]*(?:\{[^}]*\}?|\Z)")
_LOCAL = re.compile(r"\.local[ \t]+\.align[ \t]+\d+[ \t]+\.b8[ \t]+[\w$.]+\[(\d+)\]")
_ENTRY = re.compile(r"\.entry\s+([\w$.%]+)")
_FILE = re.compile(r'\.file[ \t]+(\d+)[ \t]+"([^"\n]*)"')
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_HEADER = re.compile(r"\.(?:entry|func)\b\s*(?:\([^)]*\)\s*)?([\w$.%]+)\s*(?:\(([^)]*)\))?")
_LIMITS = re.compile(r"\.(reqntid|maxntid|minnctapersm|maxnreg)\s+(\d+(?:\s*,\s*\d+)*)")
_LABEL = re.compile(r"([A-Za-z_$%][\w$.]*)\s*:(?!:)")
_STATEMENT = re.compile(r"(?:@\s*(!?\s*[%\w$.]+)\s+)?([a-z]\w*(?:\.[\w.:]*)?)(?![\w%$])\s*", re.ASCII)
_NAME = re.compile(r"(?<![\w.$%])[%A-Za-z_$][\w$.]*", re.ASCII)

_MOVES = frozenset(("mov.b32", "mov.u32", "mov.s32"))
_DECIMAL = re.compile(r"-?\d+")
_MOVED = re.compile(r"mov\.\w+ (%\w+), (\S+)$")

_LINE_MARKS = ("$L__tmp", "$L__func", "$L__pack", "$L__info")
_CONTROL = frozenset(("bra", "brx", "ret", "exit", "trap"))
_NO_RESULT = ("bar.", "barrier.", "setmaxnreg", "nanosleep", "stackrestore", "tcgen05.dealloc", "pmevent")


def sniff(text: str) -> bool:
    """True when the text names its version and an `sm_` target, as every PTX module must (PTX ISA 11.1)."""
    head = text[:20_000]
    return _VERSION.search(head) is not None and _TARGET.search(head) is not None


def parse(source: SourceText, stage: Stage) -> Module:
    """The module in a PTX text; what cannot be read is passed over and named in `problems`.

    Raises:
        ParseError: the text holds no function with a body.
    """
    # A carriage return ends no line here, so line numbers stay those of the file.
    text = source.text.replace("\r", "") if "\r" in source.text else source.text
    text = _SECTION.sub(lambda found: "\n" * found.group().count("\n"), f"\n{text}")[1:].rstrip()
    files = {int(number): path for number, path in _FILE.findall(text)}
    functions, attributes, problems = _read(text.split("\n"), files)
    if not functions:
        raise ParseError(
            "no PTX function with a body",
            source.span(0),
            "Compile the kernel again: the file is empty, cut off, or not PTX.",
        )
    for key, pattern in (("version", _VERSION), ("target", _TARGET)):
        found = pattern.search(text)
        if found is not None:
            attributes[key] = found[1]
    local = _local_bytes(text, functions)
    if local is not None:
        attributes["local"] = str(local)
    return Module(stage, source.name, tuple(functions), attributes, tuple(problems))


def _local_bytes(text: str, functions: Sequence[Function]) -> int | None:
    """Bytes of the array that the kernel declares in local memory (LLVM makes one of all that it needs).

    None where another function has one and is used: ptxas may put it into the kernel's frame.
    """
    own: list[int] = []
    kernels = set(_ENTRY.findall(text))
    for found in _LOCAL.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        owner = next((function for function in reversed(functions) if function.line <= line), None)
        if owner is None or (owner.name not in kernels and _is_used(owner.name, functions)):
            return None
        if owner.name in kernels:
            own.append(int(found[1]))
    return None if len(own) > 1 else sum(own)


def _is_used(name: str, functions: Sequence[Function]) -> bool:
    """Whether a function may be called: it is named in a call, or its address is taken."""
    return any(
        name in instruction.text
        for function in functions
        for instruction in function.instructions
        if instruction.opcode.startswith(("call", "mov"))
    )


def _read(lines: list[str], files: Mapping[int, str]) -> tuple[list[Function], dict[str, str], list[str]]:
    functions: list[Function] = []
    attributes: dict[str, str] = {}
    problems: list[str] = []
    known: dict[str, tuple[str, EventKind]] = {}  # first word of a plain line, its indent included
    where: dict[str, Location | None] = {}  # a `.loc` line that means the same wherever it stands
    locator = _Locator(files)
    body: _Body | None = None
    header = pending = ""
    header_line = pending_line = depth = 0
    in_asm = False
    location: Location | None = None
    new, unset = tuple.__new__, ()
    append = list[Instruction]().append

    for number, line in enumerate(lines, 1):
        entry = known.get(line.partition(" ")[0])
        if entry is not None and line.find(";") + 1 == len(line):
            if pending:
                problems.append(f"line {pending_line}: statement without an end")
                pending = ""
            statement = line[:-1].strip().replace("\t", "")
            append(new(Instruction, (number, *entry, location, None, statement, _decode)))
            continue
        moved = where.get(line, unset)
        if moved is not unset:
            # LLVM 23 and later count the lines of an inline asm on from the line of its call: the
            # location of the call is the one before the asm, and holds on after it.
            if not in_asm:
                location = moved
            continue
        code = line.strip()
        if not code or code.startswith(_LINE_MARKS):
            continue
        if code.startswith("//"):
            if code.endswith("inline asm"):
                in_asm = code.startswith("// begin")
            elif body is not None and code.startswith("// %bb."):
                body.block_name = code[3:].partition(":")[0]
            continue
        if code.startswith(".loc") and body is not None:
            if not in_asm:
                location, fixed = locator.read(line)
                if fixed:
                    where[line] = location
                if body.location is None:
                    body.location = location
            continue
        code = code.partition("//")[0].rstrip()
        if body is None:
            if not header and ".entry" not in code and ".func" not in code:
                continue
            header_line = header_line if header else number
            header = f"{header} {code}"
            if "{" in code:
                header, _, code = header.partition("{")
                found = _HEADER.search(header)
                for key, value in _LIMITS.findall(header):
                    attributes.setdefault(key, value)
                body = _Body(found[1] if found else "?", header_line, _parameters(found))
                append = body.instructions.append
                header, depth, location = "", 1, None
            elif ";" in code:
                header = ""  # a declaration
                continue
            else:
                continue
        while code:
            if code[0] in "{}" and pending.count("{") == pending.count("}"):
                if code[0] == "}" and pending:
                    problems.append(f"line {pending_line}: statement without an end")
                    pending = ""
                if not pending:
                    depth += 1 if code[0] == "{" else -1
                    code = code[1:].lstrip()
                    if depth:
                        continue
                    functions.append(body.close(problems))
                    body, in_asm = None, False
                    known.clear()
                    break
            label = _LABEL.match(code) if not pending else None
            if label is not None:
                if not in_asm and depth == 1:
                    body.labels.append((len(body.instructions), label[1]))
                body.last_label = label[1]
                code = code[label.end() :].lstrip()
                continue
            head, semicolon, code = code.partition(";")
            pending_line = pending_line if pending else number
            pending = f"{pending} {head}" if pending else head
            code = code.lstrip()
            if not semicolon:
                break
            plain = body.statement(pending, pending_line, location, not in_asm and depth == 1, problems)
            word = line.partition(" ")[0]
            if plain is not None and word.strip() == plain[0]:
                known[word] = plain
            pending = ""
    if body is not None:
        if pending:
            problems.append(f"line {pending_line}: statement without an end")
        problems.append(f"line {body.line}: function {body.name} {UNCLOSED}")
        functions.append(body.close(problems))
    return functions, attributes, problems


class _Locator:
    """Locations from `.loc` lines; equal ones are one object."""

    def __init__(self, files: Mapping[int, str]) -> None:
        self._files = files
        self._chains: dict[Location, Location] = {}
        self._inlined: dict[Frame, Location] = {}

    def read(self, line: str) -> tuple[Location | None, bool]:
        """The location, and whether the same line always means it (no `inlined_at`)."""
        found = _LOC.match(line)
        if found is None or int(found[2]) == 0:
            return None, True
        inner = self._frame(found[1], found[2], found[3])
        if found[4] is not None:
            # One level only is named; the printer gives the location of a caller that is inlined
            # itself before the first use of it, so the nearest one above tells the rest.
            caller = self._frame(found[4], found[5], found[6])
            chain = (inner, *self._inlined.get(caller, (caller,)))
            chain = self._inlined[inner] = self._chains.setdefault(chain, chain)
            return chain, False
        chain = (inner, *frames_of_callers(line.partition("//")[2], self._files))
        return self._chains.setdefault(chain, chain), True

    def _frame(self, file: str, line: str, column: str) -> Frame:
        return Frame(self._files.get(int(file), f"file {file}"), int(line), int(column))


class _Body:
    """A function while it is read."""

    def __init__(self, name: str, line: int, arguments: tuple[str, ...]) -> None:
        self.name, self.line, self.arguments = name, line, arguments
        self.location: Location | None = None
        self.instructions: list[Instruction] = []
        self.labels: list[tuple[int, str]] = []
        self.last_label = ""
        self.block_names: dict[int, str] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.ends: dict[int, tuple[tuple[str, ...], bool]] = {}
        """Instructions that end a block: the labels they go to, and whether they may fall through."""

    @property
    def block_name(self) -> str:
        """The compiler's name of the block that starts here (`%bb.3`)."""
        return self.block_names.get(len(self.instructions), "")

    @block_name.setter
    def block_name(self, name: str) -> None:
        self.block_names[len(self.instructions)] = name

    def statement(
        self, text: str, line: int, location: Location | None, cuts: bool, problems: list[str]
    ) -> tuple[str, EventKind] | None:
        """Add a statement; the opcode and kind of one that stands for all of its opcode."""
        text = " ".join(text.split())
        if not text:
            return None
        if text[0] == ".":
            if text.startswith(".branchtargets"):
                self.tables[self.last_label] = tuple(_NAME.findall(text[len(".branchtargets") :]))
            return None
        found = _STATEMENT.match(text)
        if found is None:
            problems.append(f"line {line}: not a statement: {text[:60]!r}")
            return None
        guard, opcode = found[1], found[2]
        kind = _kind(opcode)
        base = opcode.partition(".")[0]
        if base in _CONTROL and cuts:
            names = tuple(_NAME.findall(text, found.end()))
            targets = names if base == "bra" else names[-1:] if base == "brx" else ()
            self.ends[len(self.instructions)] = (targets, guard is not None)
        self.instructions.append(Instruction(line, opcode, kind, location, guard, text, _decode))
        return None if guard is not None or base in _CONTROL else (opcode, kind)

    def close(self, problems: list[str]) -> Function:
        """The function, cut into blocks."""
        stop = len(self.instructions)
        ends = {
            at: (tuple(name for target in targets for name in self.tables.get(target, (target,))), falls)
            for at, (targets, falls) in self.ends.items()
        }
        wanted = {name for targets, _ in ends.values() for name in targets}
        marks = [(at, name) for at, name in self.labels if name.startswith("$L__BB") or name in wanted]
        starts = {0, *(at + 1 for at in ends if at + 1 < stop), *(at for at, _ in marks)}
        order = sorted(starts)
        index = {at: place for place, at in enumerate(order)}
        named = {name: index[at] for at, name in marks}
        titles = {**self.block_names, **dict(reversed(marks))}
        for name in sorted(wanted - named.keys()):
            problems.append(f"line {self.line}: no label {name} in function {self.name}")
        blocks = []
        for place, (start, end) in enumerate(pairwise([*order, stop])):
            targets, falls = ends.get(end - 1, ((), True)) if end > start else ((), True)
            goes = [named[name] for name in targets if name in named]
            if falls and place + 1 < len(order):
                goes.append(place + 1)
            label = titles.get(start, "")
            blocks.append(BasicBlock(place, label, start, end, tuple(dict.fromkeys(goes))))
        return Function(
            self.name, self.line, self.location, self.arguments, tuple(self.instructions), tuple(blocks)
        )


def _parameters(header: re.Match[str] | None) -> tuple[str, ...]:
    if header is None or not (header[2] or "").strip():
        return ()
    return tuple(part.split()[-1].partition("[")[0] for part in header[2].split(",") if part.strip())


@lru_cache(maxsize=4096)
def _kind(opcode: str) -> EventKind:
    base, _, modifiers = opcode.partition(".")
    if base in _BY_TYPE:
        typed = ".float" if _FLOAT_TYPE.search(opcode) else ""
        return OPCODES.kind(f"{base}{typed}.{modifiers}")
    spaces = [word for word in (part.partition("::")[0] for part in modifiers.split(".")) if word in _SPACES]
    if base in _BY_SPACE and spaces:
        return OPCODES.kind(f"{base}.{spaces[0]}.{modifiers}")
    if opcode.startswith("cp.async.bulk.") and ".prefetch." not in opcode and len(spaces) > 1:
        return OPCODES.kind(f"cp.async.bulk.{spaces[0]}.{spaces[1]}")
    return OPCODES.kind(opcode)


@lru_cache(maxsize=DECODED)
def _decode(text: str) -> Operands:
    """Operands: the first one is the result unless it is an address (PTX ISA 9.1)."""
    found = _STATEMENT.match(text)
    if found is None:
        return Operands((), ())
    guard, opcode = found[1], found[2]
    base = opcode.partition(".")[0]
    guards = [] if guard is None else _NAME.findall(guard)
    operands = split_list(text[found.end() :])
    first: list[str] = []
    if base in ("bra", "brx"):
        operands = operands[:1] if base == "brx" else []
    elif base == "call":
        first = _names(operands[0]) if operands and operands[0].startswith("(") else []
        operands = [operand for operand in operands[1:] if operand.startswith("(")]
    elif operands and operands[0][:1] != "[" and (".red." in opcode or not opcode.startswith(_NO_RESULT)):
        first, operands = _names(operands[0]), operands[1:]
    reads = guards + [name for operand in operands for name in _names(operand)]
    if opcode.startswith("wgmma.mma_async"):
        reads += first  # accumulates in place
    return Operands(tuple(first), tuple(reads))


def _names(operand: str) -> list[str]:
    return [name for name in _NAME.findall(operand) if name != "_"]


def _wait(instruction: Instruction, _module: Module) -> Wait | None:
    if instruction.kind is not EventKind.WAIT:
        return None
    return _nvidia.wait_of(instruction.opcode, instruction.text)


def _transfer(instruction: Instruction, _module: Module) -> Transfer | None:
    if instruction.kind not in TRANSFERS and "expect_tx" not in instruction.opcode:
        return None
    return _nvidia.transfer_of(instruction.opcode, instruction.text)


def _commit(instruction: Instruction) -> Queue | None:
    return _nvidia.commit_queue(instruction.opcode) if instruction.kind is EventKind.COMMIT else None


def _matrix(instruction: Instruction, module: Module) -> MatrixOp | None:
    if instruction.kind is not EventKind.MATRIX:
        return None
    opcode, descriptor = instruction.opcode, None
    if opcode.startswith("tcgen05"):
        operands = split_list(instruction.text[instruction.text.find(opcode) + len(opcode) :])
        place = _nvidia.descriptor_operand(opcode)
        descriptor = _IMMEDIATES.value(operands[place], module) if place < len(operands) else None
    return _nvidia.matrix_of(opcode, descriptor)


class _Immediates:
    """Registers that hold one number wherever they are read, of the module last asked about."""

    def __init__(self) -> None:
        self._known: tuple[Module | None, dict[str, int | None]] = (None, {})

    def value(self, operand: str, module: Module) -> int | None:
        """The number that an operand stands for, None where it is computed or differs from place to place."""
        if _DECIMAL.fullmatch(operand) is not None:
            return int(operand)
        if self._known[0] is not module:
            self._known = (module, self._read(module))
        return self._known[1].get(operand)

    @staticmethod
    def _read(module: Module) -> dict[str, int | None]:
        # LLVM keeps registers in single assignment but for the copies of a phi, which are `mov` too.
        found: dict[str, int | None] = {}
        for function in module.functions:
            for instruction in function.instructions:
                moved = _MOVED.match(instruction.text) if instruction.opcode in _MOVES else None
                if moved is not None:
                    number = int(moved[2]) if _DECIMAL.fullmatch(moved[2]) is not None else None
                    found[moved[1]] = number if found.get(moved[1], number) == number else None
        return found


_IMMEDIATES = _Immediates()

FORMAT = Format(
    name="PTX",
    stages=(Stage.PTX,),
    parse=parse,
    sniff=sniff,
    wait=_wait,
    transfer=_transfer,
    commit=_commit,
    matrix=_matrix,
    types=no_types,
    in_shared=lambda instruction: ".shared" in instruction.opcode,
    traits=_nvidia.TRAITS.of,
    conditions=PTX,
    cannot_read=(
        "A load or store without a state space is counted as global: a generic address tells no more.",
        "Branches and labels inside inline asm make no blocks and no edges.",
        "Of two inlined calls that share a line of a helper, the caller named nearest above is taken.",
        "The functions an indirect call may reach (`.callprototype`, `.calltargets`).",
        "`trap` ends a block like `exit`; a debugger that goes on after it is not thought of.",
    ),
)

"""LLVM IR as `AsmWriter` prints it (LLVM Language Reference Manual), LLVM 14 and later.

A call of inline assembly gives one instruction per relevant instruction inside, so four `mov` and one
`ld.global` are one global load. Opcodes are LLVM's own (`fadd`, `load`), the names of intrinsics
(`llvm.fma.f32`), `@name` for other calls, and the inner opcode for inline assembly.

Cannot read: see `FORMAT.cannot_read`, and what the printer does not print (unindented statements, statements
over several lines other than `switch`, `invoke` and `callbr`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from artifact_inspector.errors import ParseError
from artifact_inspector.formats._conditions import LLVM
from artifact_inspector.formats._faults import UNCLOSED, Faults
from artifact_inspector.formats._scan import DECODED, Format
from artifact_inspector.formats.llvm.calls import (
    LOADS,
    STORES,
    Events,
    events_of_assembly,
    events_of_callee,
)
from artifact_inspector.formats.llvm.metadata import Locations, unquoted
from artifact_inspector.formats.llvm.opcodes import OPCODES
from artifact_inspector.formats.llvm.operations import (
    TRAITS,
    commit,
    matrix_of,
    transfer,
    vector_loads_in_flight,
    wait_of,
)
from artifact_inspector.model import (
    BasicBlock,
    EventKind,
    Function,
    Instruction,
    Module,
    Operands,
    Stage,
)
from artifact_inspector.model.limits import ASSEMBLY
from artifact_inspector.model.text import SourceText, split_list

__all__ = ["FORMAT", "OPCODES", "parse"]

_NAME = r'%(?:"[^"]*"|[-\w.$]+)'
_STATEMENT = re.compile(rf"[ \t]+(?:{_NAME} = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)(?![\w:.])", re.ASCII)
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')
_FUNCTION_END = re.compile(r"\}|!|@|attributes |declare ")
_HEADER = re.compile(r'define [^@"]*@("[^"]*"|[-\w.$]+)\(')
_HEADER_ATTRIBUTES = re.compile(r"\) (?:[a-z_]+ )*#(\d+) ")
_GROUP = re.compile(r"\nattributes #(\d+) = ")
_HEADER_SUBPROGRAM = re.compile(r"!dbg !(\d+)")
_CALLEE = re.compile(r'[^@"]*(?:@("[^"]*"|[-\w.$]+)\(|"([^"]*)", ")')
_POINTER = re.compile(
    r"[^,{<(]*(?:(?:<\d+ x [^,>(]*>|addrspace\(\d+\))[^,{<(]*)?, ptr(?: addrspace\((\d+)\))? [%@]"
)
_CONSTANT_EXPRESSION = re.compile(r"[%@]|\b[a-z]\w* (?:\w+ ){0,12}\(")
_ADDRESS_SPACE = re.compile(r"addrspace\((\d+)\)")
_TARGET_LABEL = re.compile(rf"\blabel ({_NAME})")
_OPERAND = re.compile(rf'\blabel {_NAME}|({_NAME})|"[^"]*"', re.ASCII)
_PLAIN_NAME = re.compile(r"%[-\w.$]+", re.ASCII)
_INCOMING = re.compile(rf"\[ ({_NAME}), %", re.ASCII)
# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_SNIFF = re.compile(
    r'^(?:; ModuleID = |source_filename = "|target (?:datalayout|triple) = "|define [^\n]*@[^\n]*\{\s*$)',
    re.MULTILINE,
)
_TRIPLE = re.compile(r'\ntarget triple = "([^"]*)"')
_TARGET_CPU = re.compile(r'"target-cpu"="([^"]*)"')
_TRIPLE_GENERATION = re.compile(r"gfx[0-9a-f]+|(?<=amdgpu)\d+\.[0-9a-f]+")

_CONTINUED_UNTIL = {"switch": "]", "invoke": " to label %", "callbr": " to label %"}
_CONTINUATIONS = frozenset(("to", "cleanup", "catch", "filter"))
_TERMINATORS = frozenset(("br", "ret", "unreachable", "indirectbr", "resume", *_CONTINUED_UNTIL))
_SPECIAL = _TERMINATORS | _CONTINUATIONS | {"load", "store", "call"}
_DEBUG = ", !dbg !"

_new = tuple.__new__


def sniff(text: str) -> bool:
    """True when the text looks like an LLVM module."""
    return _SNIFF.search(text) is not None


def parse(source: SourceText, stage: Stage) -> Module:
    """The module of an `.llir` file: every `define`, in the order of the text.

    Raises:
        ParseError: the text defines no function.
    """
    text, faults = source.text, Faults(source)
    attributes = _attributes(text)
    context = _Context(
        Locations(text, faults), attributes.get("target", ""), faults, frozenset(_GROUP.findall(text))
    )
    lines = text.split("\n")
    starts = list(_starts(text))
    functions: list[Function] = []
    for start, stop in pairwise([*starts, len(lines)]):
        header = _HEADER.match(lines[start])
        if header is None:
            faults.tell(start + 1, "the function has no readable header")
        else:
            functions.append(_Body(header, start + 1, context).read(lines[start + 1 : stop]))
    if not functions:
        raise ParseError(
            "the text defines no LLVM function", source.span(0), "Check that the file is complete LLVM IR."
        )
    return Module(
        stage, source.name, faults.distinct(functions), attributes, faults.problems, is_whole=faults.is_whole
    )


def _starts(text: str) -> Iterator[int]:
    """Line numbers (0-based) of the lines that begin a function."""
    at = counted = number = 0
    while (at := text.find("define ", at)) >= 0:
        if at == 0 or text[at - 1] == "\n":
            number, counted = number + text.count("\n", counted, at), at
            yield number
        at += 1


class _Context(NamedTuple):
    """State shared by all functions of a module during parsing."""

    locations: Locations
    target: str
    faults: Faults
    groups: frozenset[str]
    """Numbers of the attribute groups, which follow all functions."""


def _attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    triple = _TRIPLE.search(f"\n{text}")
    cpu = _TARGET_CPU.search(text)
    if triple is not None:
        attributes["triple"] = triple[1]
    if cpu is not None:
        attributes["target"] = cpu[1]
    elif triple is not None:
        generation = _TRIPLE_GENERATION.search(triple[1])
        if generation is not None:
            attributes["target"] = "gfx" + generation[0].removeprefix("gfx").replace(".", "")
    return attributes


class _Body:
    """A function under construction."""

    def __init__(self, header: re.Match[str], number: int, context: _Context) -> None:
        self._header, self._number, self._context = header, number, context
        self._arguments = tuple(_arguments(header.string, header.end()))
        self._instructions: list[Instruction] = []
        self._append = self._instructions.append
        # Unnamed values share one numbering: arguments, then blocks and instructions in text order.
        self._labels = [str(sum(argument[1:].isdigit() for argument in self._arguments))]
        self._starts = [0]
        self._exits: list[tuple[int, list[str]] | None] = [None]
        """Of each block: the line of its terminator, and the labels in it."""
        self._plain: dict[str, Events] = {}
        """Opcodes whose kind does not depend on operands."""
        self._calls: dict[str, Events] = {}
        """Calls by their text up to the first bracket: the callee, or the whole assembly."""
        self._loads: dict[str, Events] = {}
        """Loads by their text up to the first value, if that is the pointer."""

    def read(self, lines: list[str]) -> Function:
        """The function, from the lines after its header."""
        locations, plain, calls, loads = self._context.locations, self._plain, self._calls, self._loads
        append, new, statement = self._append, _new, _STATEMENT.match
        locations.line = self._number
        closed = False
        rest = iter(enumerate(lines, self._number + 1))
        for at, line in rest:
            # Two words of indent, then the result, `=`, the opcode, and the operands.
            words = line.split(" ", 5) if line.startswith("  %") else ()
            if len(words) == 6 and words[3] == "=":
                events = plain.get(words[4]) or (
                    loads.get(words[5].partition(" %")[0])
                    if words[4] == "load"
                    else calls.get(words[5].partition("(")[0])
                )
                if events is not None:
                    debug = line.rfind(_DEBUG)
                    location, mark = locations[line[debug + 8 :]] if debug >= 0 else (None, "")
                    text = line[2:debug] + mark if debug >= 0 else line.strip()
                    for opcode, kind, guard in events:
                        append(new(Instruction, (at, opcode, kind, location, guard, text, decode)))
                    continue
            found = statement(line)
            if found is not None:
                self._statement(at, line, found, rest)
            elif _FUNCTION_END.match(line):
                closed = line[0] == "}"
                break
            else:
                self._mark(at, line)
        return self._close(closed=closed)

    def _mark(self, at: int, line: str) -> None:
        """Process a line that is not a statement: a label, a comment, or unreadable text."""
        label = _LABEL.match(line)
        if label is None:
            if line and not line.lstrip().startswith((";", "#dbg_")) and not line.isspace():
                self._context.faults.tell(at, f"not an instruction: {line.strip()[:60]}")
        elif self._instructions or len(self._labels) > 1:
            self._labels.append(unquoted(label[1]))
            self._starts.append(len(self._instructions))
            self._exits.append(None)
        else:
            self._labels[0] = unquoted(label[1])

    def _statement(self, at: int, line: str, found: re.Match[str], rest: Iterator[tuple[int, str]]) -> None:
        opcode = found[1]
        if opcode in _CONTINUED_UNTIL:
            line = _joined(line, rest, _CONTINUED_UNTIL[opcode])
        debug = line.rfind(_DEBUG)
        if debug >= 0:
            location, mark = self._context.locations[line[debug + 8 :]]
            text = line[:debug].strip() + mark
        else:
            location, text = None, line.strip()
        if opcode == "call":
            for inner, kind, guard in self._call(at, line, _CALLEE.match(line, found.end())):
                self._append(_new(Instruction, (at, inner, kind, location, guard, text, decode)))
            return
        if opcode not in _SPECIAL:
            kind = OPCODES.kind(opcode)
            self._plain[opcode] = ((opcode, kind, None),)
        elif opcode in ("load", "store"):
            opaque = _POINTER.match(line, found.end())
            space = _typed_pointer_space(text) if opaque is None else opaque[1]
            load = LOADS.get(space, EventKind.OTHER)
            kind = load if opcode == "load" else STORES.get(load, EventKind.OTHER)
            if opaque is not None and opcode == "load":
                told, value, more = line[found.end() + 1 : opaque.end()].partition(" %")
                if value and not more:
                    self._loads[told] = ((opcode, kind, None),)
        elif opcode in _TERMINATORS:
            kind = EventKind.BRANCH
            self._exits[-1] = (at, _TARGET_LABEL.findall(text))
        else:
            return  # continues another statement
        self._append(Instruction(at, opcode, kind, location, None, text, decode))

    def _call(self, at: int, line: str, callee: re.Match[str] | None) -> Events:
        if callee is None:
            return (("call", EventKind.BRANCH, None),)
        name = callee[1]
        if name == "llvm.amdgcn.s.waitcnt":
            waits = vector_loads_in_flight(line, self._context.target) is not None
            return ((name, EventKind.WAIT if waits else EventKind.OTHER, None),)
        events = events_of_assembly(callee[2]) if name is None else events_of_callee(name)
        if len(events) > ASSEMBLY.most:
            # each of them would be an instruction with the text of the whole call
            self._context.faults.tell(at, f"inline assembly of more than {ASSEMBLY.most} instructions")
            events = (("asm", EventKind.OTHER, None),)
        bracket = line.find("(")
        words = line[:bracket].split(" ", 5)
        if len(words) == 6 and callee.end() <= bracket + 1:
            self._calls[words[5]] = events
        return events

    def _close(self, *, closed: bool) -> Function:
        name, faults = unquoted(self._header[1]), self._context.faults
        if not closed:
            faults.cut_off(self._number, f"the function {name} {UNCLOSED}")
        group = _HEADER_ATTRIBUTES.search(self._header.string)
        if group is not None and group[1] not in self._context.groups:
            faults.missing(self._number, f"attributes #{group[1]}")
        subprogram = _HEADER_SUBPROGRAM.search(self._header.string)
        where = None if subprogram is None else self._context.locations.subprogram(subprogram[1])
        instructions = tuple(self._instructions)
        bounds = [*self._starts, len(instructions)]
        blocks = tuple(_blocks(self._number, self._labels, bounds, self._exits, instructions, faults))
        return Function(name, self._number, where, self._arguments, instructions, blocks)


def _arguments(header: str, at: int) -> Iterator[str]:
    for parameter in split_list(header, at):
        named = re.search(rf"({_NAME})\s*$", parameter)
        if named is not None:
            yield named[1]


def _joined(line: str, rest: Iterable[tuple[int, str]], until: str) -> str:
    if until in line:
        return line
    parts = [line]
    for _, more in rest:
        parts.append(more.strip())
        if until in f" {more}":
            break
    return " ".join(parts)


def _typed_pointer_space(text: str) -> str | None:
    """The address space of the typed pointer of a load or store; None for generic."""
    operands = split_list(text)
    if len(operands) < 2:
        return None
    # The pointer's own space comes last in its type: `half addrspace(1)* addrspace(3)* %p`.
    spaces = _ADDRESS_SPACE.findall(_CONSTANT_EXPRESSION.split(operands[1])[0])
    return spaces[-1] if spaces else None


def _blocks(
    line: int,
    labels: list[str],
    bounds: list[int],
    exits: list[tuple[int, list[str]] | None],
    instructions: Sequence[Instruction],
    faults: Faults,
) -> Iterator[BasicBlock]:
    indices: dict[str, int] = {}
    for index, label in enumerate(labels):
        indices.setdefault(label, index)
    for index, (label, exit_) in enumerate(zip(labels, exits, strict=True)):
        successors: dict[int, None] = {}
        if exit_ is None:
            last = instructions[bounds[index + 1] - 1].line if bounds[index + 1] else line
            faults.cut_off(last, f"block {label} has no terminator")
        else:
            for name in exit_[1]:
                target = indices.get(unquoted(name[1:]))
                if target is None:
                    faults.cut_off(exit_[0], f"branch to {name}, which is not a block")
                else:
                    successors[target] = None
        yield BasicBlock(index, label, bounds[index], bounds[index + 1], tuple(successors))


@lru_cache(maxsize=DECODED)
def decode(text: str) -> Operands:
    """The values that a statement defines and reads, without block labels and globals."""
    result, _, statement = text.partition(" = ") if text.startswith("%") else ("", "", text)
    if statement.startswith("phi "):
        found = _INCOMING.findall(statement)
    elif "label" in statement or '"' in statement:
        found = [name for name in _OPERAND.findall(statement) if name]
    else:
        found = _PLAIN_NAME.findall(statement)
    return Operands((result,) if result else (), tuple(found))


_IN_SHARED = re.compile(r"addrspace\(3\)|\.shared\b|\bds_")

FORMAT = Format(
    name="llvm",
    stages=(Stage.LLIR,),
    parse=parse,
    sniff=sniff,
    wait_of=wait_of,
    transfer=transfer,
    commit=commit,
    matrix_of=matrix_of,
    in_shared=lambda instruction: _IN_SHARED.search(instruction.text) is not None,
    traits=TRAITS.of,
    conditions=LLVM,
    cannot_read=(
        "Loads and stores through a generic pointer count as global.",
        "Without a target in the file (Triton names one from 3.9 on), `s.waitcnt` is decoded as on gfx9.",
        "Address space 7 is AMD's buffer pointer here, never NVIDIA's shared::cluster.",
        "A wait whose depth is an operand of inline assembly (`$0`) has no depth.",
        "Named types (`%struct.s`) among the operands are read as values.",
        "A call through a function pointer is a branch with the opcode `call`.",
    ),
)

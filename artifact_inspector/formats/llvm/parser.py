"""LLVM IR as `AsmWriter` prints it (LLVM Language Reference Manual), LLVM 14 and later.

A call of inline assembly gives one instruction per relevant instruction inside, so four `mov` and one `ld.global` are
one global load. Opcodes are LLVM's own (`fadd`, `load`), the names of intrinsics (`llvm.fma.f32`), `@name` for other
calls, and the inner opcode for inline assembly.

Cannot read: see `FORMAT.cannot_read`, and what the printer does not print (unindented statements, statements over
several lines other than `switch`, `invoke` and `callbr`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from artifact_inspector.formats._conditions import LLVM
from artifact_inspector.formats._format import DECODE_CACHE_SIZE, Format
from artifact_inspector.formats._problems import NOT_CLOSED, ProblemLog
from artifact_inspector.formats.llvm.calls import LOADS, STORES, Events, events_of_assembly, events_of_callee
from artifact_inspector.formats.llvm.metadata import DebugLocations, unquote
from artifact_inspector.formats.llvm.opcodes import OPCODES
from artifact_inspector.formats.llvm.operations import TRAITS, commit, matrix_of, transfer, wait_of, wait_of_immediate
from artifact_inspector.model import BasicBlock, EventKind, Function, Instruction, Module, Operands, Stage
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
_POINTER = re.compile(r"[^,{<(]*(?:(?:<\d+ x [^,>(]*>|addrspace\(\d+\))[^,{<(]*)?, ptr(?: addrspace\((\d+)\))? [%@]")
_CONSTANT_EXPRESSION = re.compile(r"[%@]|\b[a-z]\w* (?:\w+ ){0,12}\(")
_ADDRESS_SPACE = re.compile(r"addrspace\((\d+)\)")
_TARGET_LABEL = re.compile(rf"\blabel ({_NAME})")
_OPERAND = re.compile(rf'\blabel {_NAME}|({_NAME})|"[^"]*"', re.ASCII)
_PLAIN_NAME = re.compile(r"%[-\w.$]+", re.ASCII)
_INCOMING = re.compile(rf"\[ ({_NAME}), %", re.ASCII)
# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_SNIFF = re.compile(
    r'^(?:; ModuleID = |source_filename = "|target (?:datalayout|triple) = "|define [^\n]*@[^\n]*\{\s*$)', re.MULTILINE
)
_TRIPLE = re.compile(r'\ntarget triple = "([^"]*)"')
_TARGET_CPU = re.compile(r'"target-cpu"="([^"]*)"')
_TRIPLE_GENERATION = re.compile(r"gfx[0-9a-f]+|(?<=amdgpu)\d+\.[0-9a-f]+")

_CONTINUED_UNTIL = {"switch": "]", "invoke": " to label %", "callbr": " to label %"}
_CONTINUATIONS = frozenset(("to", "cleanup", "catch", "filter"))
_TERMINATORS = frozenset(("br", "ret", "unreachable", "indirectbr", "resume", *_CONTINUED_UNTIL))
_NEEDS_OPERANDS = _TERMINATORS | _CONTINUATIONS | {"load", "store", "call"}
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
    text, log = source.text, ProblemLog(source)
    attributes = _module_attributes(text)
    context = _Context(DebugLocations(text, log), attributes.get("target", ""), log, frozenset(_GROUP.findall(text)))
    lines = text[: text.find("\n!", text.rfind("\ndefine ") + 1) + 1 or None].split("\n")  # without metadata
    starts = list(_function_lines(text))
    functions: list[Function] = []
    for start, stop in pairwise([*starts, len(lines)]):
        header = _HEADER.match(lines[start])
        if header is None:
            log.report(start + 1, "the function has no readable header")
        else:
            functions.append(_LlvmBody(header, start + 1, context).parse(lines[start + 1 : stop]))
    return log.build_module(
        stage, functions, attributes, lacks="the text defines no LLVM function",
        remedy="Check that the file is complete LLVM IR.",
    )  # fmt: skip


def _function_lines(text: str) -> Iterator[int]:
    """Line numbers (0-based) of the lines that begin a function."""
    at = counted_offset = number = 0
    while (at := text.find("define ", at)) >= 0:
        if at == 0 or text[at - 1] == "\n":
            number, counted_offset = number + text.count("\n", counted_offset, at), at
            yield number
        at += 1


class _Context(NamedTuple):
    """State shared by all functions of a module during parsing."""

    locations: DebugLocations
    target: str
    log: ProblemLog
    groups: frozenset[str]
    """Numbers of the attribute groups, which follow all functions."""


def _module_attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    triple, cpu = _TRIPLE.search(f"\n{text}"), _TARGET_CPU.search(text)
    generation = None
    if triple is not None:
        attributes["triple"] = triple[1]
        generation = _TRIPLE_GENERATION.search(triple[1])
    if cpu is not None:
        attributes["target"] = cpu[1]
    elif generation is not None:
        attributes["target"] = "gfx" + generation[0].removeprefix("gfx").replace(".", "")
    return attributes


class _LlvmBody:
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
        self._plain_events: dict[str, Events] = {}
        """Opcodes whose kind does not depend on operands."""
        self._call_cache: dict[str, Events] = {}
        """Calls by their text up to the first bracket: the callee, or the whole assembly."""
        self._load_cache: dict[str, Events] = {}
        """Loads by their text up to the first value, if that is the pointer."""

    def parse(self, lines: list[str]) -> Function:
        """The function, from the lines after its header."""
        locations, plain, loads = self._context.locations, self._plain_events, self._load_cache
        calls, append, new, statement = self._call_cache, self._append, _new, _STATEMENT.match
        locations.line = self._number
        closed = False
        numbered_lines = iter(enumerate(lines, self._number + 1))
        for at, line in numbered_lines:
            # Two words of indent, then the result, `=`, the opcode, and the operands.
            tokens = line.split(" ", 5) if line.startswith("  %") else ()
            if len(tokens) == 6 and tokens[3] == "=":
                events = plain.get(tokens[4]) or (
                    loads.get(tokens[5].partition(" %")[0])
                    if tokens[4] == "load"
                    else calls.get(tokens[5].partition("(")[0])
                )
                if events is not None:
                    debug = line.rfind(_DEBUG)
                    location, mark = locations[line[debug + 8 :]] if debug >= 0 else (None, "")
                    text = line[2:debug] + mark if debug >= 0 else line.strip()
                    for opcode, kind, guard in events:
                        append(new(Instruction, (at, opcode, kind, location, guard, text, decode)))
                    continue
            statement_match = statement(line)
            if statement_match is not None:
                self._parse_statement(at, line, statement_match, numbered_lines)
            elif _FUNCTION_END.match(line):
                closed = line[0] == "}"
                break
            else:
                self._parse_other_line(at, line)
        return self._finish(closed=closed)

    def _parse_other_line(self, at: int, line: str) -> None:
        """Process a line that is not a statement: a label, a comment, or unreadable text."""
        label = _LABEL.match(line)
        if label is None:
            if line and not line.lstrip().startswith((";", "#dbg_")) and not line.isspace():
                self._context.log.report(at, f"not an instruction: {line.strip()[:60]}")
        elif self._instructions or len(self._labels) > 1:
            self._labels.append(unquote(label[1]))
            self._starts.append(len(self._instructions))
            self._exits.append(None)
        else:
            self._labels[0] = unquote(label[1])

    def _parse_statement(
        self, at: int, line: str, match: re.Match[str], following_lines: Iterator[tuple[int, str]]
    ) -> None:
        opcode = match[1]
        if opcode in _CONTINUED_UNTIL:
            line = _join_continuation(line, following_lines, _CONTINUED_UNTIL[opcode])
        debug = line.rfind(_DEBUG)
        if debug >= 0:
            location, mark = self._context.locations[line[debug + 8 :]]
            text = line[:debug].strip() + mark
        else:
            location, text = None, line.strip()
        if opcode == "call":
            for inner, kind, guard in self._call_events(at, line, _CALLEE.match(line, match.end())):
                self._append(_new(Instruction, (at, inner, kind, location, guard, text, decode)))
            return
        if opcode not in _NEEDS_OPERANDS:
            kind = OPCODES.kind(opcode)
            self._plain_events[opcode] = ((opcode, kind, None),)
        elif opcode in ("load", "store"):
            opaque = _POINTER.match(line, match.end())
            space = _typed_pointer_space(text) if opaque is None else opaque[1]
            load = LOADS.get(space, EventKind.OTHER)
            kind = load if opcode == "load" else STORES.get(load, EventKind.OTHER)
            if opaque is not None and opcode == "load":
                type_prefix, pointer_mark, following_values = line[match.end() + 1 : opaque.end()].partition(" %")
                if pointer_mark and not following_values:
                    self._load_cache[type_prefix] = ((opcode, kind, None),)
        elif opcode in _TERMINATORS:
            kind = EventKind.BRANCH
            self._exits[-1] = (at, _TARGET_LABEL.findall(text))
        else:
            return  # continues another statement
        self._append(Instruction(at, opcode, kind, location, None, text, decode))

    def _call_events(self, at: int, line: str, callee: re.Match[str] | None) -> Events:
        if callee is None:
            return (("call", EventKind.BRANCH, None),)
        name = callee[1]
        if name == "llvm.amdgcn.s.waitcnt":
            waits = wait_of_immediate(line, self._context.target) is not None
            return ((name, EventKind.WAIT if waits else EventKind.OTHER, None),)
        events = events_of_assembly(callee[2]) if name is None else events_of_callee(name)
        if len(events) > 1 and len(events) > ASSEMBLY.value:  # a limit is read from the environment
            # each of them would be an instruction with the text of the whole call
            self._context.log.report(at, f"inline assembly of more than {ASSEMBLY.value} instructions")
            events = (("asm", EventKind.OTHER, None),)
        bracket = line.find("(")
        tokens = line[:bracket].split(" ", 5)
        if len(tokens) == 6 and callee.end() <= bracket + 1:
            self._call_cache[tokens[5]] = events
        return events

    def _finish(self, *, closed: bool) -> Function:
        name, log = unquote(self._header[1]), self._context.log
        if not closed:
            log.report_truncation(self._number, f"the function {name} {NOT_CLOSED}")
        group = _HEADER_ATTRIBUTES.search(self._header.string)
        if group is not None and group[1] not in self._context.groups:
            log.report_missing(self._number, f"attributes #{group[1]}")
        subprogram = _HEADER_SUBPROGRAM.search(self._header.string)
        location = None if subprogram is None else self._context.locations.subprogram(subprogram[1])
        instructions = tuple(self._instructions)
        bounds = [*self._starts, len(instructions)]
        blocks = tuple(_blocks(self._number, self._labels, bounds, self._exits, instructions, log))
        return Function(name, self._number, location, self._arguments, instructions, blocks)


def _arguments(header: str, at: int) -> Iterator[str]:
    for parameter in split_list(header, at):
        named = re.search(rf"({_NAME})\s*$", parameter)
        if named is not None:
            yield named[1]


def _join_continuation(line: str, following_lines: Iterable[tuple[int, str]], until: str) -> str:
    if until in line:
        return line
    pieces = [line]
    for _, next_line in following_lines:
        pieces.append(next_line.strip())
        if until in f" {next_line}":
            break
    return " ".join(pieces)


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
    log: ProblemLog,
) -> Iterator[BasicBlock]:
    indices = {label: index for index, label in reversed([*enumerate(labels)])}  # the first of several
    for index, (label, exit_) in enumerate(zip(labels, exits, strict=True)):
        successors: dict[int, None] = {}
        if exit_ is None:
            last = instructions[bounds[index + 1] - 1].line if bounds[index + 1] else line
            log.report_truncation(last, f"block {label} has no terminator")
        else:
            for name in exit_[1]:
                target = indices.get(unquote(name[1:]))
                if target is None:
                    log.report_truncation(exit_[0], f"branch to {name}, which is not a block")
                else:
                    successors[target] = None
        yield BasicBlock(index, label, bounds[index], bounds[index + 1], tuple(successors))


@lru_cache(maxsize=DECODE_CACHE_SIZE)
def decode(text: str) -> Operands:
    """The values that a statement defines and reads, without block labels and globals."""
    result, _, statement = text.partition(" = ") if text.startswith("%") else ("", "", text)
    if statement.startswith("phi "):
        values = _INCOMING.findall(statement)
    elif "label" in statement or '"' in statement:
        values = [name for name in _OPERAND.findall(statement) if name]
    else:
        values = _PLAIN_NAME.findall(statement)
    return Operands((result,) if result else (), tuple(values))


_IN_SHARED = re.compile(r"addrspace\(3\)|\.shared\b|\bds_")

FORMAT = Format(
    name="llvm", stages=(Stage.LLIR,), parse=parse, sniff=sniff, wait_of=wait_of, transfer=transfer, commit=commit,
    matrix_of=matrix_of, accesses_shared=lambda instruction: _IN_SHARED.search(instruction.text) is not None,
    traits=TRAITS.lookup, conditions=LLVM,
    cannot_read=(
        "Loads and stores through a generic pointer count as global.",
        "Without a target in the file (Triton names one from 3.9 on), an `s.waitcnt` on which generations differ "
        "has no depth.",
        "Address space 7 is AMD's buffer pointer here, never NVIDIA's shared::cluster.",
        "A wait whose depth is an operand of inline assembly (`$0`) has no depth.",
        "Named types (`%struct.s`) among the operands are read as values.",
        "A call through a function pointer is a branch with the opcode `call`.",
    ),
)  # fmt: skip

"""TTIR and TTGIR: MLIR's custom assembly form as Triton prints it, one operation a line.

Follows MLIR's AsmPrinter and the dialects of Triton 2.0 to 3.9 (`triton_gpu` became `ttg`,
`triton_nvidia_gpu` became `ttng`, `amdgpu` became `amdg`). Structured control flow (`scf`,
`ttg.warp_specialize`) is cut into basic blocks, so that analysis sees one kind of control flow;
what the regions hand to each other is kept as flows. The body of a reduction describes how two
elements combine: its operations are kept as OTHER and are no computes of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from artifact_inspector.errors import ParseError
from artifact_inspector.formats._axes import axis_operation
from artifact_inspector.formats._conditions import tensor_conditions
from artifact_inspector.formats._dialects import (
    TRAITS,
    VALUE,
    access,
    commit,
    matrix,
    modern,
    pointing,
    precision,
    transfer,
    types,
    wait,
)
from artifact_inspector.formats._mlir_opcodes import OPCODES
from artifact_inspector.formats._scan import DECODED, Format
from artifact_inspector.formats._shared import launch, shared_use, source_name
from artifact_inspector.formats._types import parse_layouts, read_signature
from artifact_inspector.model import (
    UNCLOSED,
    BasicBlock,
    EventKind,
    Flow,
    Frame,
    Function,
    Instruction,
    Location,
    Module,
    Operands,
    Partition,
    Stage,
)
from artifact_inspector.model.text import SourceText, split_list

__all__ = ["FORMAT", "OPCODES"]

_BODIES = frozenset({"tt.reduce", "tt.scan", "tt.map_elementwise"})
_CALLED_FLOAT = re.compile(
    r"\b(?:fma|mul|add|sub|div|ex2|lg2|rcp|sqrt|rsqrt|tanh|max|min)(?:\.[a-z]+)*\.b?f\d"
)

_OPERATION = re.compile(r'((?:%[^\s,=()]+(?:, )?)+)? ?=? ?"?([A-Za-z_]\w*(?:\.\w+)*)"?')
# Triton 2.0 prints MLIR's own `func`, `return` and `select` without their dialect.
_FUNCTION = re.compile(r'(?:tt\.func|func\.func|func)\s+(?:\w+ )*@("[^"]*"|[\w$.@-]+)\(')
_ARGUMENT = re.compile(r"(%[\w$.-]+):")
_DIVISOR = re.compile(r"(%[\w$.-]+):[^%]*?\btt\.divisibility = (\d+)")
_PAIR = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_BLOCK = re.compile(r"\^([\w$.-]+)(?:\((.*)\))?:")
_TARGET = re.compile(r"\^([\w$.-]+)(?:\(([^)]*)\))?")
# A line break in front finds the starts of lines many times faster than `^`, which is tried at every place.
_ALIAS = re.compile(r"\n#(loc\d*) = loc\((.*)\)\s*$", re.M)
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?::\d+)?:?\d*)?')
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\((.*)\)$')
_ATTRIBUTE = re.compile(r'"?((?:ttg|ttng|triton_gpu)\.[\w-]+)"? = (?:"([^"]*)"|(-?\w+))')
_WARPS = re.compile(r"num_warps\(\d+\)")
_EXTENT = re.compile(r"axis = (\d+)")
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")


def sniff(text: str) -> bool:
    """True for an MLIR module that holds a Triton function."""
    head = text[:65536]
    return (
        "tt.func" in head
        or "func public @" in head
        or ("module" in head and ("ttg." in head or "triton_gpu." in head))
    )


def parse(source: SourceText, stage: Stage) -> Module:
    """The module of one TTIR or TTGIR file.

    Raises:
        ParseError: the text holds no Triton function.
    """
    text = source.text
    locations = _Locations(dict(_ALIAS.findall(f"\n{text}")))
    reader = _Reader(locations)
    header: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped[0] == "#" or stripped.startswith("//"):
            continue
        if stripped.startswith("module"):
            header.update((key, quoted or bare) for key, quoted, bare in _ATTRIBUTE.findall(stripped))
        else:
            reader.read(stripped, number)
    functions = reader.finish()
    if not functions:
        raise ParseError(
            "no Triton function in this MLIR text",
            source.span(0),
            "The file may be truncated or of another kind.",
        )
    return Module(stage, source.name, functions, header, tuple(reader.problems), parse_layouts(text))


@dataclass
class _Locations:
    """Location aliases of a file, resolved to inline chains on demand."""

    aliases: dict[str, str]
    _resolved: dict[str, Location | None] = field(default_factory=dict)

    def resolve(self, text: str) -> Location | None:
        """The chain that a location attribute names; None for unknown or line 0."""
        if text in self._resolved:
            return self._resolved[text]
        self._resolved[text] = None  # a cycle of aliases resolves to nothing
        found = self._resolved[text] = self._read(text)
        return found

    def _read(self, text: str) -> Location | None:
        if text.startswith("#"):
            return self.resolve(self.aliases.get(text[1:], "unknown"))
        position = _POSITION.match(text)
        if position is not None:
            file, line, column = position.groups()
            return (Frame(file, int(line), int(column)),) if int(line) > 0 else None
        named = _NAMED.match(text)
        if named is not None:
            return self.resolve(named[1])
        if text.startswith("callsite(") and " at " in text:
            callee, caller = _split_callsite(text[len("callsite(") : -1])
            inner, outer = self.resolve(callee), self.resolve(caller)
            return None if inner is None or outer is None else inner + outer
        if text.startswith("fused"):
            # Several places made one operation; the first that is known stands for them.
            for part in split_list(text[text.find("[") + 1 : text.rfind("]")]):
                found = self.resolve(part)
                if found is not None:
                    return found
        return None


@dataclass
class _Region:
    """An open `{`: which operation it belongs to and where its blocks began."""

    kind: str
    operation: int
    entry: int
    """Block that the region was entered from."""
    header: int = -1
    results: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    ends: list[int] = field(default_factory=list)
    """Last blocks of the alternatives that are already closed."""
    alternatives: int = 0


class _Reader:
    """Reads line after line; the state of the function being read lives here."""

    def __init__(self, locations: _Locations) -> None:
        self.locations = locations
        self.problems: list[str] = []
        self._functions: list[Function] = []
        self._open: list[_Region] = []
        self._clear("", 0, ())

    def _clear(self, name: str, line: int, arguments: tuple[str, ...]) -> None:
        self._name, self._line, self._arguments = name, line, arguments
        self._divisibility: dict[str, int] = {}
        self._signature: tuple[str, ...] = ()
        self._instructions: list[Instruction] = []
        self._starts: list[int] = [0]
        self._labels: list[str] = ["entry"]
        self._edges: list[list[int]] = [[]]
        self._flows: list[Flow] = []
        self._partitions: list[Partition] = []
        self._named_blocks: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._jumps: list[tuple[int, int, str, tuple[str, ...]]] = []

    # -- lines ---------------------------------------------------------------

    def read(self, line: str, number: int) -> None:
        """Take in one stripped line."""
        first = line[0]
        if first == "}":
            self._close(line, number)
        elif first == "^":
            self._label(line)
        elif line.startswith(("tt.func", "func ", "func.func")):
            self._function(line, number)
        elif not self._open:
            return
        elif line.endswith("{") and line.startswith(("default", "partition")):
            self._alternative(line)
        else:
            self._operation(line, number)

    def finish(self) -> tuple[Function, ...]:
        """The functions read; one that is still open is kept as far as it goes."""
        if self._open:
            self.problems.append(
                f"line {self._line}: function {self._name} {UNCLOSED}: the file is truncated"
            )
            self._open.clear()
            self._end_function(None)
        return tuple(self._functions)

    def _function(self, line: str, number: int) -> None:
        found = _FUNCTION.match(line)
        if found is None or not line.endswith("{"):
            return  # a declaration
        if self._open:
            self.problems.append(f"line {number}: function {self._name} {UNCLOSED} before the next begins")
            self._open.clear()
            self._end_function(None)
        arguments = tuple(_ARGUMENT.findall(line, found.end()))
        self._clear(found[1].strip('"'), number, arguments)
        self._divisibility = {name: int(number) for name, number in _DIVISOR.findall(line, found.end())}
        self._signature = read_signature(line[found.end() :])
        self._open.append(_Region("func", -1, 0))

    def _operation(self, line: str, number: int) -> None:
        found = _OPERATION.match(line)
        if found is None or line.startswith("attributes"):
            if not line.startswith(("attributes", "->", ":")):  # a custom form that breaks over lines
                self.problems.append(f"line {number}: not understood: {line[:60]}")
            return
        text, location = self._split_location(line)
        opcode = found[2]
        in_body = self._open[-1].kind == "body"
        kind = EventKind.OTHER if in_body else _kind(opcode, text)
        index = len(self._instructions)
        self._instructions.append(Instruction(number, opcode, kind, location, None, text, decode))
        if text.endswith("{"):
            self._open_region(found[1], opcode, text, index)
        elif kind is EventKind.BRANCH:
            self._terminate(opcode, text, index)
            if opcode == "ttg.warp_specialize" or opcode.endswith(".warp_specialize"):
                self._open.append(_Region("specialize", index, self._block))

    def _split_location(self, line: str) -> tuple[str, Location | None]:
        at = line.rfind(" loc(")
        if at < 0 or not line.endswith(")"):
            return line, None
        return line[:at], self.locations.resolve(line[at + 5 : -1])

    # -- regions -------------------------------------------------------------

    def _open_region(self, results: str | None, opcode: str, text: str, index: int) -> None:
        names = _result_names(results or "")
        entry = self._block
        if opcode == "scf.for":
            header = self._begin("for", entry)
            pairs = _PAIR.findall(text, text.find("iter_args(")) if "iter_args(" in text else []
            self._flows += [Flow(source, target, index, index, False) for target, source in pairs]
            self._open.append(
                _Region("for", index, entry, header, names, tuple(target for target, _ in pairs))
            )
        elif opcode == "scf.while":
            header = self._begin("while", entry)
            pairs = _PAIR.findall(text, text.find("scf.while"))
            self._flows += [Flow(source, target, index, index, False) for target, source in pairs]
            self._open.append(
                _Region("while", index, entry, header, names, tuple(target for target, _ in pairs))
            )
        elif opcode == "scf.if":
            self._begin("then", entry)
            self._open.append(_Region("if", index, entry, results=names))
        elif opcode in _BODIES or text.endswith("({"):
            self._open.append(_Region("body", index, entry))
        else:
            self._open.append(_Region("inline", index, entry, results=names))

    def _alternative(self, line: str) -> None:
        region = self._open[-1]
        if region.kind != "specialize":
            return
        name = line.split("(")[0].split(" ")[0]
        warps = _WARPS.search(line)
        if warps is not None:
            self._extend(region.operation, f" {name} {warps[0]}")
        first = self._begin(name, region.entry)
        captured = self._instructions[region.operation].operands.reads
        arguments = _ARGUMENT.findall(line.split(") num_warps")[0])
        self._flows += [
            Flow(source, target, region.operation, region.operation, False)
            for source, target in zip(captured, arguments, strict=False)
        ]
        self._open.append(_Region("partition", region.operation, region.entry, first))

    def _extend(self, operation: int, text: str) -> None:
        # Warps of partitions and types of what they are handed stand behind the operation's own line.
        instruction = self._instructions[operation]
        self._instructions[operation] = instruction._replace(text=instruction.text + text)

    def _close(self, line: str, number: int) -> None:
        if not self._open:
            return
        region = self._open.pop()
        if region.kind == "func":
            _, location = self._split_location(line)
            self._end_function(location)
            return
        if region.kind == "body" and line.startswith("}, {"):
            self._open.append(region)
            return
        if region.kind == "if" and line.startswith("} else {"):
            region.ends.append(self._block)
            region.alternatives = 1
            self._begin("else", region.entry)
            self._open.append(region)
            return
        if region.kind == "while" and line.startswith("} do {"):
            region.entry = self._block  # from here on: the block that decides
            self._begin("do", region.entry)
            region.kind = "do"
            self._open.append(region)
            return
        self._locate(region.operation, line)
        if region.kind in ("for", "do"):
            last = self._block
            self._edges[last].append(region.header)
            self._begin("after", region.entry if region.kind == "do" else last)
        elif region.kind == "if":
            ends = [*region.ends, self._block] if region.alternatives else [region.entry, self._block]
            join = self._begin("join", ends[0])
            for end in ends[1:]:
                self._edges[end].append(join)
        elif region.kind == "partition":
            specialize = self._open[-1]
            name = self._labels[region.header]
            self._partitions.append(Partition(name, region.header, self._block + 1))
            specialize.ends.append(self._block)
            if line.startswith("} :"):
                self._extend(region.operation, self._split_location(line)[0][1:])
                self._open.pop()
                join = self._begin("join", specialize.ends[0])
                for end in specialize.ends[1:]:
                    self._edges[end].append(join)

    def _locate(self, operation: int, line: str) -> None:
        # An operation with regions carries its types and its location behind the closing brace.
        closing, location = self._split_location(line)
        instruction = self._instructions[operation]
        text, kind = instruction.text, instruction.kind
        if text.endswith("({"):
            text = text[:-2] + closing[closing.find(")") + 1 :].lstrip()
            kind = _kind(instruction.opcode, text) if kind is EventKind.FLOAT else kind
        elif closing.startswith("} {"):
            text = text[:-1] + closing[2:]  # a loop's own attributes: `} {tt.num_stages = 3 : i32}`
        self._instructions[operation] = instruction._replace(
            location=location or instruction.location, kind=kind, text=text
        )

    def _terminate(self, opcode: str, text: str, index: int) -> None:
        reads = decode(text).reads
        region = self._open[-1]
        if opcode == "scf.yield":
            if region.kind in ("for", "do"):
                for source, target in zip(reads, region.arguments, strict=False):
                    self._flows.append(Flow(source, target, index, region.operation, True))
            if region.kind in ("for", "if", "inline"):
                for source, target in zip(reads, region.results, strict=False):
                    self._flows.append(Flow(source, target, index, region.operation, False))
        elif opcode == "scf.condition":
            for source, target in zip(reads[1:], region.results, strict=False):
                self._flows.append(Flow(source, target, index, region.operation, False))
            region.ends.append(index)
        elif opcode in ("cf.br", "cf.cond_br", "cf.switch"):
            for label, values in _TARGET.findall(text):
                self._jumps.append((self._block, index, label, tuple(VALUE.findall(values))))

    def _label(self, line: str) -> None:
        found = _BLOCK.match(line)
        if found is None or not self._open:
            return
        region = self._open[-1]
        arguments = tuple(_ARGUMENT.findall(found[2] or ""))
        if region.kind == "do" and region.ends:
            # The arguments of the body are what `scf.condition` passes on.
            condition = region.ends[0]
            passed = self._instructions[condition].operands.reads[1:]
            owner = region.operation
            self._flows += [
                Flow(s, t, condition, owner, False) for s, t in zip(passed, arguments, strict=False)
            ]
        elif region.kind == "func":
            block = self._begin(found[1], None)
            self._named_blocks[found[1]] = (block, arguments)

    # -- blocks --------------------------------------------------------------

    @property
    def _block(self) -> int:
        return len(self._starts) - 1

    def _begin(self, label: str, source: int | None) -> int:
        self._starts.append(len(self._instructions))
        self._labels.append(label)
        self._edges.append([])
        if source is not None:
            self._edges[source].append(self._block)
        return self._block

    def _end_function(self, location: Location | None) -> None:
        for block, index, label, values in self._jumps:
            if label in self._named_blocks:
                target, arguments = self._named_blocks[label]
                self._edges[block].append(target)
                back = target <= block
                self._flows += [
                    Flow(s, t, index, -1 - target, back) for s, t in zip(values, arguments, strict=False)
                ]
        stops = [*self._starts[1:], len(self._instructions)]
        blocks = tuple(
            BasicBlock(i, self._labels[i], self._starts[i], stops[i], tuple(dict.fromkeys(self._edges[i])))
            for i in range(len(self._starts))
        )
        self._functions.append(
            Function(
                self._name,
                self._line,
                location,
                self._arguments,
                tuple(self._instructions),
                blocks,
                tuple(sorted(self._flows, key=lambda flow: flow.at)),
                tuple(self._partitions),
                self._divisibility,
                self._signature,
            )
        )


@lru_cache(maxsize=DECODED)
def decode(text: str) -> Operands:
    """Results and reads of one operation; types and attributes hold no values.

    Operations with regions (`scf.*`) have no results here: their values arrive by flows.
    """
    found = _OPERATION.match(text)
    if found is None:
        return Operands((), tuple(VALUE.findall(text)))
    results = () if found[2].startswith("scf.") else _result_names(found[1] or "")
    return Operands(results, tuple(VALUE.findall(text, found.end())))


def _kind(opcode: str, text: str) -> EventKind:
    kind = OPCODES.kind(modern(opcode))
    if kind is EventKind.FLOAT and opcode in _BODIES and _extent(text) == 1:
        return EventKind.MOVE  # nothing is combined along an axis of extent 1
    if opcode == "tt.elementwise_inline_asm":
        return EventKind.FLOAT if _CALLED_FLOAT.search(text) is not None else EventKind.MOVE
    return kind


def _extent(text: str) -> int | None:
    axis, shape = _EXTENT.search(text), _SHAPE.search(text)
    if axis is None or shape is None:
        return None
    extents = shape[1].rstrip("x").split("x")
    return int(extents[int(axis[1])]) if int(axis[1]) < len(extents) else None


def _result_names(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for part in text.rstrip(" =").split(","):
        name, colon, count = part.strip().partition(":")
        if colon and count.isdigit():
            names += [f"{name}#{i}" for i in range(int(count))]
        elif name:
            names.append(name)
    return tuple(names)


def _split_callsite(text: str) -> tuple[str, str]:
    depth = 0
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif depth == 0 and text.startswith(" at ", at):
            return text[:at], text[at + 4 :]
    return text, "unknown"


FORMAT = Format(
    name="MLIR",
    stages=(Stage.TTIR, Stage.TTGIR),
    parse=parse,
    sniff=sniff,
    wait=wait,
    transfer=transfer,
    commit=commit,
    matrix=matrix,
    types=types,
    pointing=pointing,
    traits=TRAITS.of,
    conditions=tensor_conditions(access),
    access=access,
    shared=shared_use,
    precision=precision,
    axes=axis_operation,
    launch=launch,
    source_name=source_name,
    cannot_read=(
        "Operations in MLIR's generic form other than those that Triton prints so are kept with their kind, "
        "but operands inside attribute dictionaries are taken for reads.",
        "A fused location is read as the first of its parts.",
        "Only the forms of `scf`, `cf` and `ttg.warp_specialize` make control flow; regions of other "
        "operations are read in line.",
    ),
)

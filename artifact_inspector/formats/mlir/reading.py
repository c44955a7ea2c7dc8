"""TTIR and TTGIR: MLIR's custom assembly form as Triton prints it, one operation per line.

Follows MLIR's AsmPrinter and the dialects of Triton 2.0 to 3.9 (`triton_gpu` became `ttg`,
`triton_nvidia_gpu` became `ttng`, `amdgpu` became `amdg`). Structured control flow (`scf`,
`ttg.warp_specialize`) is lowered to basic blocks, so that analysis sees one kind of control flow. Values
passed between regions are kept as flows. The body of a reduction defines how two elements combine: its
operations are kept as OTHER and are not computes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from artifact_inspector.errors import ParseError
from artifact_inspector.formats._conditions import tensor_conditions
from artifact_inspector.formats._faults import UNCLOSED, Faults
from artifact_inspector.formats._scan import Format
from artifact_inspector.formats.mlir.axes import axis_operation
from artifact_inspector.formats.mlir.dialects import (
    TRAITS,
    VALUE,
    access,
    commit,
    matrix_of,
    pointing,
    precision,
    transfer,
    types,
    wait_of,
)
from artifact_inspector.formats.mlir.locations import Locations
from artifact_inspector.formats.mlir.opcodes import OPCODES
from artifact_inspector.formats.mlir.operations import (
    BODIES,
    OPERATION,
    count_results,
    decode,
    kind_of,
    result_names,
)
from artifact_inspector.formats.mlir.regions import LOOPS, YIELDING, Form, Region
from artifact_inspector.formats.mlir.shared import launch, shared_use, source_name
from artifact_inspector.formats.mlir.types import parse_layouts, read_signature
from artifact_inspector.model import (
    BasicBlock,
    EventKind,
    Flow,
    Function,
    Instruction,
    Location,
    Module,
    Partition,
    Stage,
)
from artifact_inspector.model.limits import NESTING, RESULTS
from artifact_inspector.model.text import SourceText, integer

__all__ = ["FORMAT", "OPCODES"]

# Triton 2.0 prints MLIR's own `func`, `return` and `select` without their dialect.
_FUNCTION = re.compile(r'(?:tt\.func|func\.func|func)\s+(?:\w+ )*@("[^"]*"|[\w$.@-]+)\(')
_ARGUMENT = re.compile(r"(%[\w$.-]+):")
_DIVISOR = re.compile(r"(%[\w$.-]+):[^%]*?\btt\.divisibility = (\d+)")
_PAIR = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_BLOCK = re.compile(r"\^([\w$.-]+)(?:\((.*)\))?:")
_TARGET = re.compile(r"\^([\w$.-]+)(?:\(([^()]*)\))?")
_ATTRIBUTE = re.compile(r'"?((?:ttg|ttng|triton_gpu)\.[\w-]+)"? = (?:"([^"]*)"|(-?\w+))')
_WARPS = re.compile(r"num_warps\(\d+\)")


def sniff(text: str) -> bool:
    """True for an MLIR module with a Triton function."""
    head = text[:65536]
    return (
        "tt.func" in head
        or "func public @" in head
        or ("module" in head and ("ttg." in head or "triton_gpu." in head))
    )


def parse(source: SourceText, stage: Stage) -> Module:
    """The module of one TTIR or TTGIR file.

    Raises:
        ParseError: the text has no Triton function, or exceeds a limit.
    """
    text, faults = source.text, Faults(source)
    reader = _Reader(Locations(text, faults), faults)
    header: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped[0] == "#" or stripped.startswith("//"):
            continue
        if stripped.startswith("module"):
            reader.module(stripped, number)
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
    return Module(
        stage,
        source.name,
        faults.distinct(functions),
        header,
        faults.problems,
        parse_layouts(text),
        faults.is_whole,
    )


class _Reader:
    """Processes line by line, and keeps the state of the function being parsed."""

    def __init__(self, locations: Locations, faults: Faults) -> None:
        self._locations = locations
        self._faults = faults
        self._deepest = NESTING.most
        self._most_results = RESULTS.most
        self._functions: list[Function] = []
        self._open: list[Region] = []
        self._modules: list[int] = []
        """Lines of the open modules."""
        self._clear("", 0, ())

    def _clear(self, name: str, line: int, arguments: tuple[str, ...]) -> None:
        self._name, self._line, self._arguments = name, line, arguments
        self._divisibility: dict[str, int] = {}
        self._signature: tuple[str, ...] = ()
        self._renamed: dict[str, str] = {}
        self._instructions: list[Instruction] = []
        self._starts: list[int] = [0]
        self._labels: list[str] = ["entry"]
        self._edges: list[list[int]] = [[]]
        self._flows: list[Flow] = []
        self._partitions: list[Partition] = []
        self._named_blocks: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._jumps: list[tuple[int, int, str, tuple[str, ...]]] = []

    # -- lines ---------------------------------------------------------------

    def module(self, line: str, number: int) -> None:
        """Process the line that opens a module."""
        if line.endswith("{"):
            self._modules.append(number)

    def read(self, line: str, number: int) -> None:
        """Process one stripped line."""
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
            self._alternative(line, number)
        else:
            self._operation(line, number)

    def finish(self) -> tuple[Function, ...]:
        """The functions of the file; an unclosed function is kept up to the end of the file."""
        if self._open:
            self._break_off(self._line, f"function {self._name} {UNCLOSED}: the file is truncated")
        elif self._modules:
            self._faults.cut_off(self._modules[0], f"the module {UNCLOSED}: the file is truncated")
        return tuple(self._functions)

    def _break_off(self, number: int, fault: str) -> None:
        self._faults.cut_off(number, fault)
        for region in self._open:
            self._extend(region)
        self._open.clear()
        self._end_function(None)

    def _function(self, line: str, number: int) -> None:
        found = _FUNCTION.match(line)
        if found is None or not line.endswith("{"):
            return  # a declaration
        if self._open:
            self._break_off(number, f"function {self._name} {UNCLOSED} before the next begins")
        arguments = tuple(_ARGUMENT.findall(line, found.end()))
        self._clear(found[1].strip('"'), number, arguments)
        divisors = ((name, integer(written)) for name, written in _DIVISOR.findall(line, found.end()))
        self._divisibility = {name: divisor for name, divisor in divisors if divisor is not None}
        self._signature = read_signature(line[found.end() :])
        self._renamed = self._locations.renamed(line[found.end() :])
        self._open.append(Region(Form.FUNCTION, -1, 0))

    def _operation(self, line: str, number: int) -> None:
        found = OPERATION.match(line)
        if found is None or line.startswith("attributes"):
            if not line.startswith(("attributes", "->", ":")):  # continuation of a custom form
                self._faults.tell(number, f"unreadable operation: {line[:60]}")
            return
        text, location = self._split_location(line, number)
        results, opcode = found[1], found[2]
        if results and ":" in results and count_results(results) > self._most_results:
            self._faults.refuse(number, RESULTS)
        kind = EventKind.OTHER if self._open[-1].form is Form.BODY else kind_of(opcode, text)
        index = len(self._instructions)
        self._instructions.append(Instruction(number, opcode, kind, location, None, text, decode))
        if text.endswith("{"):
            self._open_region(results, opcode, text, index)
        elif kind is EventKind.BRANCH:
            self._terminate(opcode, text, index)
            if opcode.endswith(".warp_specialize"):
                self._open.append(Region(Form.SPECIALIZE, index, self._block))
        if len(self._open) > self._deepest:
            self._faults.refuse(number, NESTING)

    def _split_location(self, line: str, number: int) -> tuple[str, Location | None]:
        at = line.rfind(" loc(")
        if at < 0 or not line.endswith(")"):
            return line, None
        return line[:at], self._locations.resolve(line[at + 5 : -1], number)

    # -- regions -------------------------------------------------------------

    def _open_region(self, results: str | None, opcode: str, text: str, index: int) -> None:
        entry = self._block
        region = Region(Form.INLINE, index, entry, results=result_names(results or ""))
        if opcode in ("scf.for", "scf.while"):
            is_for = opcode == "scf.for"
            region.form = Form.FOR if is_for else Form.WHILE
            region.header = self._begin("for" if is_for else "while", entry)
            behind = text.find("iter_args(" if is_for else opcode)
            pairs = _PAIR.findall(text, behind) if behind >= 0 else []
            self._flows += [Flow(source, target, index, index, False) for target, source in pairs]
            region.arguments = tuple(target for target, _ in pairs)
        elif opcode == "scf.if":
            self._begin("then", entry)
            region.form = Form.IF
        elif opcode in BODIES or text.endswith("({"):
            region.form = Form.BODY
        self._open.append(region)

    def _alternative(self, line: str, number: int) -> None:
        region = self._open[-1]
        if region.form is not Form.SPECIALIZE:
            return
        name = line.split("(")[0].split(" ")[0]
        warps = _WARPS.search(line)
        if warps is not None:
            region.behind.append(f" {name} {warps[0]}")
        first = self._begin(name, region.entry)
        captured = self._instructions[region.operation].operands.reads
        arguments = _ARGUMENT.findall(line.split(") num_warps")[0])
        self._hand_over(captured, arguments, region.operation, region.operation)
        self._open.append(Region(Form.PARTITION, region.operation, region.entry, first))
        if len(self._open) > self._deepest:
            self._faults.refuse(number, NESTING)

    def _hand_over(
        self, sources: Sequence[str], targets: Sequence[str], at: int, owner: int, *, back: bool = False
    ) -> None:
        for source, target in zip(sources, targets, strict=False):
            self._flows.append(Flow(source, target, at, owner, back))

    def _extend(self, region: Region) -> None:
        """Append the text that follows an operation's own line."""
        if region.behind:
            instruction = self._instructions[region.operation]
            text = instruction.text + "".join(region.behind)
            self._instructions[region.operation] = instruction._replace(text=text)
            region.behind.clear()

    def _close(self, line: str, number: int) -> None:
        if not self._open:
            del self._modules[-1:]
            return
        if self._goes_on(self._open[-1], line):
            return
        region = self._open.pop()
        if region.form is Form.FUNCTION:
            self._end_function(self._split_location(line, number)[1])
            return
        self._locate(region.operation, line, number)
        if region.form in LOOPS:
            last = self._block
            self._edges[last].append(region.header)
            self._begin("after", region.entry if region.form is Form.DO else last)
        elif region.form is Form.IF:
            self._join([*region.ends, self._block] if region.alternatives else [region.entry, self._block])
        elif region.form is Form.PARTITION:
            self._close_partition(region, line, number)

    def _goes_on(self, region: Region, line: str) -> bool:
        """Process a line that closes one region of an operation and opens its next."""
        if region.form is Form.IF and line.startswith("} else {"):
            region.ends.append(self._block)
            region.alternatives = 1
            self._begin("else", region.entry)
        elif region.form is Form.WHILE and line.startswith("} do {"):
            region.entry = self._block  # from here on the block with the condition
            self._begin("do", region.entry)
            region.form = Form.DO
        else:
            return region.form is Form.BODY and line.startswith("}, {")
        return True

    def _close_partition(self, region: Region, line: str, number: int) -> None:
        specialize = self._open[-1]
        self._partitions.append(Partition(self._labels[region.header], region.header, self._block + 1))
        specialize.ends.append(self._block)
        if line.startswith("} :"):
            specialize.behind.append(self._split_location(line, number)[0][1:])
            self._extend(specialize)
            self._open.pop()
            self._join(specialize.ends)

    def _join(self, ends: Sequence[int]) -> None:
        join = self._begin("join", ends[0])
        for end in ends[1:]:
            self._edges[end].append(join)

    def _locate(self, operation: int, line: str, number: int) -> None:
        # An operation with regions has its types and its location after the closing brace.
        closing, location = self._split_location(line, number)
        instruction = self._instructions[operation]
        text, kind = instruction.text, instruction.kind
        if text.endswith("({"):
            text = text[:-2] + closing[closing.find(")") + 1 :].lstrip()
            kind = kind_of(instruction.opcode, text) if kind is EventKind.FLOAT else kind
        elif closing.startswith("} {"):
            text = text[:-1] + closing[2:]  # the loop's own attributes: `} {tt.num_stages = 3 : i32}`
        self._instructions[operation] = instruction._replace(
            location=location or instruction.location, kind=kind, text=text
        )

    def _terminate(self, opcode: str, text: str, index: int) -> None:
        region = self._open[-1]
        if opcode == "scf.yield":
            reads = decode(text).reads
            if region.form in LOOPS:
                self._hand_over(reads, region.arguments, index, region.operation, back=True)
            if region.form in YIELDING:
                self._hand_over(reads, region.results, index, region.operation)
        elif opcode == "scf.condition":
            self._hand_over(decode(text).reads[1:], region.results, index, region.operation)
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
        if region.form is Form.DO and region.ends:
            # The block arguments of the body are the operands of `scf.condition`.
            condition = region.ends[0]
            passed = self._instructions[condition].operands.reads[1:]
            self._hand_over(passed, arguments, condition, region.operation)
        elif region.form is Form.FUNCTION:
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
                self._hand_over(values, arguments, index, -1 - target, back=target <= block)
        stops = [*self._starts[1:], len(self._instructions)]
        blocks = tuple(
            BasicBlock(i, self._labels[i], self._starts[i], stops[i], tuple(dict.fromkeys(self._edges[i])))
            for i in range(len(self._starts))
        )
        self._functions.append(
            Function(
                name=self._name,
                line=self._line,
                location=location,
                arguments=self._arguments,
                instructions=tuple(self._instructions),
                blocks=blocks,
                flows=tuple(sorted(self._flows, key=lambda flow: flow.at)),
                partitions=tuple(self._partitions),
                divisibility=self._divisibility,
                signature=self._signature,
                renamed=self._renamed,
            )
        )


FORMAT = Format(
    name="MLIR",
    stages=(Stage.TTIR, Stage.TTGIR),
    parse=parse,
    sniff=sniff,
    wait_of=wait_of,
    transfer=transfer,
    commit=commit,
    matrix_of=matrix_of,
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
        "Operations in MLIR's generic form, except those that Triton prints in that form, keep their kind, "
        "but operands inside attribute dictionaries count as reads.",
        "A fused location is read as its first part.",
        "Only `scf`, `cf` and `ttg.warp_specialize` create control flow; regions of other "
        "operations are read inline.",
    ),
)

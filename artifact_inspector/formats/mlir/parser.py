"""TTIR and TTGIR: MLIR's custom assembly form as Triton prints it, one operation per line.

Follows MLIR's AsmPrinter and the dialects of Triton 2.0 to 3.9 (`triton_gpu` became `ttg`, `triton_nvidia_gpu` became
`ttng`, `amdgpu` became `amdg`). Structured control flow (`scf`, `ttg.warp_specialize`) is lowered to basic blocks, so
that analysis sees one kind of control flow. Values passed between regions are kept as flows. The body of a reduction
defines how two elements combine: its operations are kept as OTHER and are not computes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from artifact_inspector.formats._conditions import tensor_conditions
from artifact_inspector.formats._format import Format
from artifact_inspector.formats._problems import NOT_CLOSED, ProblemLog
from artifact_inspector.formats.mlir.axes import axis_operation
from artifact_inspector.formats.mlir.dialects import (
    TRAITS,
    VALUE,
    access_operands,
    commit,
    input_precision,
    matrix_of,
    pointer_use,
    tensor_types,
    transfer,
    wait_of,
)
from artifact_inspector.formats.mlir.locations import LocationAliases
from artifact_inspector.formats.mlir.opcodes import OPCODES
from artifact_inspector.formats.mlir.operations import (
    OPERATION,
    OPERATIONS_WITH_BODY,
    count_results,
    decode,
    kind_of,
    result_names,
)
from artifact_inspector.formats.mlir.regions import LOOPS, YIELDING, OpenRegion, OpenRegionKind
from artifact_inspector.formats.mlir.schedule import integer_value, schedule_step
from artifact_inspector.formats.mlir.shared import launch_parameters, shared_use, source_name
from artifact_inspector.formats.mlir.types import parse_layouts, read_signature
from artifact_inspector.model import EventKind, Instruction, Location, Stage
from artifact_inspector.model.limits import NESTING, RESULTS
from artifact_inspector.model.module import BasicBlock, Flow, Function, Module, Partition
from artifact_inspector.model.text import SourceText, parse_integer

__all__ = ["FORMAT", "OPCODES"]

# Triton 2.0 prints MLIR's own `func`, `return` and `select` without their dialect.
_FUNCTION = re.compile(r'(?:tt\.func|func\.func|func)\s+(?:\w+ )*@("[^"]*"|[\w$.@-]+)\(')
_ARGUMENT = re.compile(r"(%[\w$.-]+):")
_DIVISOR = re.compile(r"(%[\w$.-]+):[^%]*?\btt\.divisibility = (\d+)")
_PAIR = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+(?:#\d+)?)")
_BLOCK = re.compile(r"\^([\w$.-]+)(?:\((.*)\))?:")
_TARGET = re.compile(r"\^([\w$.-]+)(?:\(([^()]*)\))?")
_ATTRIBUTE = re.compile(r'"?((?:ttg|ttng|tlx|triton_gpu)\.[\w-]+)"? = (?:"([^"]*)"|(-?\w+))')
_WARPS = re.compile(r"num_warps\(\d+\)")
PARTITIONS_OPCODE = ".warp_specialize"
"""End of the opcode that starts partitions."""


def sniff(text: str) -> bool:
    """True for an MLIR module with a Triton function."""
    head = text[:65536]
    is_module = "module" in head and ("ttg." in head or "triton_gpu." in head)
    return "tt.func" in head or "func public @" in head or is_module


def parse(source: SourceText, stage: Stage) -> Module:
    """The module of one TTIR or TTGIR file.

    Raises:
        ParseError: the text has no Triton function, or exceeds a limit.
    """
    text, log = source.text, ProblemLog(source)
    parser = _MlirParser(LocationAliases(text, log), log)
    header: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped[0] == "#" or stripped.startswith("//"):
            continue
        if stripped.startswith("module"):
            parser.modules += [number] if stripped.endswith("{") else []
            header.update((key, quoted or bare) for key, quoted, bare in _ATTRIBUTE.findall(stripped))
        else:
            parser.parse_line(stripped, number)
    module = log.build_module(
        stage, parser.finish(), header, lacks="no Triton function in this MLIR text",
        remedy="The file may be truncated or of another kind.",
    )  # fmt: skip
    return replace(module, layouts=parse_layouts(text))


class _MlirParser:
    """Processes line by line, and keeps the state of the function being parsed."""

    def __init__(self, locations: LocationAliases, log: ProblemLog) -> None:
        self._locations = locations
        self._log = log
        self._max_nesting = NESTING.value
        self._max_results = RESULTS.value
        self._functions: list[Function] = []
        self._regions: list[OpenRegion] = []
        self.modules: list[int] = []
        """Lines of the open modules."""
        self._reset("", 0, ())

    def _reset(self, name: str, line: int, arguments: tuple[str, ...]) -> None:
        self._name, self._line, self._arguments = name, line, arguments
        self._divisibility: dict[str, int] = {}
        self._signature: tuple[str, ...] = ()
        self._source_names: dict[str, str] = {}
        self._instructions: list[Instruction] = []
        self._starts: list[int] = [0]
        self._labels: list[str] = ["entry"]
        self._edges: list[list[int]] = [[]]
        self._flows: list[Flow] = []
        self._partitions: list[Partition] = []
        self._labelled_blocks: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._branches: list[tuple[int, int, str, tuple[str, ...]]] = []

    def parse_line(self, line: str, number: int) -> None:
        first = line[0]
        if first == "}":
            self._close_region(line, number)
        elif first == "^":
            self._parse_label(line)
        elif line.startswith(("tt.func", "func ", "func.func")):
            self._parse_function(line, number)
        elif not self._regions:
            return
        elif line.endswith("{") and line.startswith(("default", "partition")):
            self._open_partition(line, number)
        else:
            self._parse_operation(line, number)

    def finish(self) -> tuple[Function, ...]:
        """The functions of the file; an unclosed function is kept up to the end of the file."""
        if self._regions:
            self._truncate(self._line, f"function {self._name} {NOT_CLOSED}: the file is truncated")
        elif self.modules:
            self._log.report_truncation(self.modules[0], f"the module {NOT_CLOSED}: the file is truncated")
        return tuple(self._functions)

    def _truncate(self, number: int, problem: str) -> None:
        self._log.report_truncation(number, problem)
        for region in self._regions:
            self._append_trailing_text(region)
        self._regions.clear()
        self._end_function(None)

    def _parse_function(self, line: str, number: int) -> None:
        match = _FUNCTION.match(line)
        if match is None or not line.endswith("{"):
            return  # a declaration
        if self._regions:
            self._truncate(number, f"function {self._name} {NOT_CLOSED} before the next begins")
        arguments = tuple(_ARGUMENT.findall(line, match.end()))
        self._reset(match[1].strip('"'), number, arguments)
        divisors = ((name, parse_integer(text)) for name, text in _DIVISOR.findall(line, match.end()))
        self._divisibility = {name: divisor for name, divisor in divisors if divisor is not None}
        self._signature = read_signature(line[match.end() :])
        self._source_names = self._locations.source_names(line[match.end() :])
        self._regions.append(OpenRegion(OpenRegionKind.FUNCTION, -1, 0))

    def _parse_operation(self, line: str, number: int) -> None:
        match = OPERATION.match(line)
        if match is None or line.startswith("attributes"):
            if not line.startswith(("attributes", "->", ":")):  # continuation of a custom form
                self._log.report(number, f"unreadable operation: {line[:60]}")
            return
        text, location = self._split_location(line, number)
        results, opcode = match[1], match[2]
        if results and ":" in results and count_results(results) > self._max_results:
            self._log.reject(number, RESULTS)
        kind = EventKind.OTHER if self._regions[-1].kind is OpenRegionKind.BODY else kind_of(opcode, text)
        index = len(self._instructions)
        self._instructions.append(Instruction(number, opcode, kind, location, None, text, decode))
        if text.endswith("{"):
            self._open_region(results, opcode, text, index)
        elif kind is EventKind.BRANCH:
            self._parse_terminator(opcode, text, index)
            if opcode.endswith(PARTITIONS_OPCODE):
                self._regions.append(OpenRegion(OpenRegionKind.SPECIALIZE, index, self._block))
        if len(self._regions) > self._max_nesting:
            self._log.reject(number, NESTING)

    def _split_location(self, line: str, number: int) -> tuple[str, Location | None]:
        at = line.rfind(" loc(")
        if at < 0 or not line.endswith(")"):
            return line, None
        return line[:at], self._locations.resolve(line[at + 5 : -1], number)

    def _open_region(self, results: str | None, opcode: str, text: str, index: int) -> None:
        entry = self._block
        region = OpenRegion(OpenRegionKind.INLINE, index, entry, results=result_names(results or ""))
        if opcode in ("scf.for", "scf.while"):
            is_for = opcode == "scf.for"
            region.kind = OpenRegionKind.FOR if is_for else OpenRegionKind.WHILE
            region.header = self._begin_block("for" if is_for else "while", entry)
            pairs_start = text.find("iter_args(" if is_for else opcode)
            pairs = _PAIR.findall(text, pairs_start) if pairs_start >= 0 else []
            self._flows += [Flow(source, target, index, index, False) for target, source in pairs]
            region.arguments = tuple(target for target, _ in pairs)
        elif opcode == "scf.if":
            self._begin_block("then", entry)
            region.kind = OpenRegionKind.IF
        elif opcode in OPERATIONS_WITH_BODY or text.endswith("({"):
            region.kind = OpenRegionKind.BODY
        self._regions.append(region)

    def _open_partition(self, line: str, number: int) -> None:
        region = self._regions[-1]
        if region.kind is not OpenRegionKind.SPECIALIZE:
            return
        name = line.split("(")[0].split(" ")[0]
        warps = _WARPS.search(line)
        if warps is not None:
            region.trailing_text.append(f" {name} {warps[0]}")
        first = self._begin_block(name, region.entry)
        captured = self._instructions[region.operation].operands.reads
        arguments = _ARGUMENT.findall(line.split(") num_warps")[0])
        self._add_flows(captured, arguments, region.operation, region.operation)
        self._regions.append(OpenRegion(OpenRegionKind.PARTITION, region.operation, region.entry, first))
        if len(self._regions) > self._max_nesting:
            self._log.reject(number, NESTING)

    def _add_flows(
        self, sources: Sequence[str], targets: Sequence[str], index: int, owner: int, *, is_back: bool = False
    ) -> None:
        for source, target in zip(sources, targets, strict=False):
            self._flows.append(Flow(source, target, index, owner, is_back))

    def _append_trailing_text(self, region: OpenRegion) -> None:
        """Append the text that follows an operation's own line."""
        if region.trailing_text:
            instruction = self._instructions[region.operation]
            text = instruction.text + "".join(region.trailing_text)
            self._instructions[region.operation] = instruction._replace(text=text)
            region.trailing_text.clear()

    def _close_region(self, line: str, number: int) -> None:
        if not self._regions:
            del self.modules[-1:]
            return
        if self._continues(self._regions[-1], line):
            return
        region = self._regions.pop()
        if region.kind is OpenRegionKind.FUNCTION:
            self._end_function(self._split_location(line, number)[1])
            return
        self._set_location(region.operation, line, number)
        if region.kind in LOOPS:
            last = self._block
            self._edges[last].append(region.header)
            self._begin_block("after", region.entry if region.kind is OpenRegionKind.DO else last)
        elif region.kind is OpenRegionKind.IF:
            self._join([*region.exits, self._block] if region.alternatives else [region.entry, self._block])
        elif region.kind is OpenRegionKind.PARTITION:
            self._close_partition(region, line, number)

    def _continues(self, region: OpenRegion, line: str) -> bool:
        """Process a line that closes one region of an operation and opens its next."""
        if region.kind is OpenRegionKind.IF and line.startswith("} else {"):
            region.exits.append(self._block)
            region.alternatives = 1
            self._begin_block("else", region.entry)
        elif region.kind is OpenRegionKind.WHILE and line.startswith("} do {"):
            region.entry = self._block  # from here on the block with the condition
            self._begin_block("do", region.entry)
            region.kind = OpenRegionKind.DO
        else:
            return region.kind is OpenRegionKind.BODY and line.startswith("}, {")
        return True

    def _close_partition(self, region: OpenRegion, line: str, number: int) -> None:
        specialize = self._regions[-1]
        self._partitions.append(Partition(self._labels[region.header], region.header, self._block + 1))
        specialize.exits.append(self._block)
        if line.startswith("} :"):
            specialize.trailing_text.append(self._split_location(line, number)[0][1:])
            self._append_trailing_text(specialize)
            self._regions.pop()
            self._join(specialize.exits)

    def _join(self, ends: Sequence[int]) -> None:
        join = self._begin_block("join", ends[0])
        for end in ends[1:]:
            self._edges[end].append(join)

    def _set_location(self, operation: int, line: str, number: int) -> None:
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

    def _parse_terminator(self, opcode: str, text: str, index: int) -> None:
        region = self._regions[-1]
        if opcode == "scf.yield":
            reads = decode(text).reads
            if region.kind in LOOPS:
                self._add_flows(reads, region.arguments, index, region.operation, is_back=True)
            if region.kind in YIELDING:
                self._add_flows(reads, region.results, index, region.operation)
        elif opcode == "scf.condition":
            self._add_flows(decode(text).reads[1:], region.results, index, region.operation)
            region.exits.append(index)
        elif opcode in ("cf.br", "cf.cond_br", "cf.switch"):
            for label, values in _TARGET.findall(text):
                self._branches.append((self._block, index, label, tuple(VALUE.findall(values))))

    def _parse_label(self, line: str) -> None:
        match = _BLOCK.match(line)
        if match is None or not self._regions:
            return
        region = self._regions[-1]
        arguments = tuple(_ARGUMENT.findall(match[2] or ""))
        if region.kind is OpenRegionKind.DO and region.exits:
            # The block arguments of the body are the operands of `scf.condition`.
            condition = region.exits[0]
            operands = self._instructions[condition].operands.reads[1:]
            self._add_flows(operands, arguments, condition, region.operation)
        elif region.kind is OpenRegionKind.FUNCTION:
            block = self._begin_block(match[1], None)
            self._labelled_blocks[match[1]] = (block, arguments)

    @property
    def _block(self) -> int:
        return len(self._starts) - 1

    def _begin_block(self, label: str, source: int | None) -> int:
        self._starts.append(len(self._instructions))
        self._labels.append(label)
        self._edges.append([])
        if source is not None:
            self._edges[source].append(self._block)
        return self._block

    def _end_function(self, location: Location | None) -> None:
        for block, index, label, values in self._branches:
            if label in self._labelled_blocks:
                target, arguments = self._labelled_blocks[label]
                self._edges[block].append(target)
                self._add_flows(values, arguments, index, -1 - target, is_back=target <= block)
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
                flows=tuple(sorted(self._flows, key=lambda flow: flow.instruction_index)),
                partitions=tuple(self._partitions),
                divisibility=self._divisibility,
                signature=self._signature,
                source_names=self._source_names,
            )
        )


FORMAT = Format(
    name="MLIR", stages=(Stage.TTIR, Stage.TTGIR), parse=parse, sniff=sniff, wait_of=wait_of, transfer=transfer,
    commit=commit, matrix_of=matrix_of, tensor_types=tensor_types, pointer_use=pointer_use, traits=TRAITS.lookup,
    conditions=tensor_conditions(access_operands), access_operands=access_operands, shared_use=shared_use,
    schedule_step=schedule_step, integer_value=integer_value, input_precision=input_precision,
    axis_operation=axis_operation, launch_parameters=launch_parameters, source_name=source_name,
    cannot_read=(
        "Operations in MLIR's generic form, except those that Triton prints in that form, keep their kind, "
        "but operands inside attribute dictionaries count as reads.",
        "A fused location is read as its first part.",
        "Only `scf`, `cf` and `ttg.warp_specialize` create control flow; regions of other operations are read inline.",
    ),
)  # fmt: skip

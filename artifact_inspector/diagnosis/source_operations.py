"""What each source line of a kernel computes, from its tensor-level IR."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from artifact_inspector.analysis.flow.control_flow import find_control_flow
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Function, Instruction, Module, SourceLine, Stage
from artifact_inspector.model.tensor import TensorType

_WIDER: Mapping[str, tuple[str, ...]] = {"f32": ("f16", "bf16"), "f64": ("f32", "f16", "bf16")}
"""Operand type of a dot → the loaded types that a matrix unit multiplies without conversion."""
_PASSES_VALUES = ("arith.extf", "tt.reshape", "tt.trans", "ttg.convert_layout", "tt.fp_to_fp")


@dataclass(frozen=True, slots=True)
class SourceOperations:
    """Operations by source line, `file.py:line`."""

    operations: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Line → opcodes."""
    converts_layout: frozenset[str] = frozenset()
    """Lines whose value changes its layout."""
    wide_integers: frozenset[str] = frozenset()
    """Lines that multiply or divide 64-bit integers per element."""
    chained_loads: Mapping[str, str] = field(default_factory=dict)
    """Line of a load → line of the load that its address depends on."""
    wide_dots: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Line of a dot → type of its operands, narrower type that was loaded."""
    dot_operands: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Line of a dot → lines that load or convert its operands."""
    loops: tuple[frozenset[str], ...] = ()
    """The lines of each loop."""
    most_elements: int | None = None
    """Elements of the largest tile that is loaded or stored; None if none is."""

    def has(self, line: str | None, *opcodes: str) -> bool:
        """Whether a line has one of these operations."""
        return line is not None and not self.operations.get(line, frozenset()).isdisjoint(opcodes)


def read_source_operations(artifact: Artifact) -> SourceOperations:
    """The operations of a kernel; empty if it has no tensor-level IR."""
    problems: list[Problem] = []
    module = read_module(artifact, Stage.TTIR, problems)
    layouts = read_module(artifact, Stage.TTGIR, problems)
    module = module or layouts
    if module is None:
        return SourceOperations()
    function = _kernel_function(module, artifact.name)
    operations: defaultdict[str, set[str]] = defaultdict(set)
    for instruction in function.instructions:
        line = _line_of(instruction)
        if line is not None:
            operations[line].add(instruction.opcode)
    converted = set()
    if layouts is not None:
        for instruction in _kernel_function(layouts, artifact.name).instructions:
            if instruction.kind is EventKind.LAYOUT_CONVERSION and (line := _line_of(instruction)) is not None:
                converted.add(line)
    values = _ValueGraph(function)
    return SourceOperations(
        operations={line: frozenset(names) for line, names in operations.items()},
        converts_layout=frozenset(converted),
        wide_integers=frozenset(_wide_integer_lines(function, module)),
        chained_loads=dict(_chained_loads(function, values)),
        wide_dots=dict(_wide_dots(function, module, values)),
        dot_operands=_dot_operands(function, values),
        loops=_loop_lines(function),
        most_elements=_most_elements(function, module),
    )


def _kernel_function(module: Module, name: str) -> Function:
    named = [function for function in module.functions if function.name == name]
    return named[0] if named else module.functions[0]


def _line_of(instruction: Instruction) -> str | None:
    return None if not instruction.location else SourceLine.from_location(instruction.location).innermost


class _ValueGraph:
    """Which operations define the value of a name."""

    def __init__(self, function: Function) -> None:
        self.producers: defaultdict[str, list[Instruction]] = defaultdict(list)
        self.sources: defaultdict[str, list[str]] = defaultdict(list)
        for instruction in function.instructions:
            for name in instruction.operands.results:
                self.producers[name].append(instruction)
        for flow in function.flows:
            self.sources[flow.target].append(flow.source)

    def definitions(self, names: Sequence[str], through: Sequence[str] | None = None) -> Iterator[Instruction]:
        """Operations that names depend on; beyond one, only if its opcode is in `through` (None: unless it loads)."""
        worklist, visited = list(names), set()
        while worklist:
            name = worklist.pop()
            if name in visited:
                continue
            visited.add(name)
            worklist += self.sources.get(name, ())
            for instruction in self.producers.get(name, ()):
                yield instruction
                passes = instruction.opcode in through if through is not None else instruction.opcode != "tt.load"
                if passes and not instruction.opcode.startswith("scf."):
                    worklist += instruction.operands.reads


def _chained_loads(function: Function, values: _ValueGraph) -> Iterator[tuple[str, str]]:
    for instruction in function.instructions:
        line = _line_of(instruction)
        if instruction.opcode != "tt.load" or line is None:
            continue
        for origin in values.definitions(instruction.operands.reads[:1]):
            if origin.opcode == "tt.load" and (origin_line := _line_of(origin)) is not None:
                yield line, origin_line


def _wide_dots(function: Function, module: Module, values: _ValueGraph) -> Iterator[tuple[str, tuple[str, str]]]:
    for instruction in function.instructions:
        line = _line_of(instruction)
        if instruction.opcode != "tt.dot" or line is None:
            continue
        for operand in instruction.operands.reads[:2]:
            for origin in values.definitions([operand], _PASSES_VALUES):
                types = _types(origin, module)
                if (
                    origin.opcode == "arith.extf"
                    and len(types) > 1
                    and types[0].element in _WIDER.get(types[-1].element, ())
                ):
                    yield line, (types[-1].element, types[0].element)


def _loop_lines(function: Function) -> tuple[frozenset[str], ...]:
    flow = find_control_flow(function)
    lines: list[set[str]] = [set() for _ in flow.loops]
    for index, instruction in enumerate(function.instructions):
        loop, line = flow.loop_at(index), _line_of(instruction)
        while loop is not None:
            if line is not None:
                lines[loop].add(line)
            loop = flow.loops[loop].parent
    return tuple(map(frozenset, lines))


def _dot_operands(function: Function, values: _ValueGraph) -> dict[str, frozenset[str]]:
    lines: defaultdict[str, set[str]] = defaultdict(set)
    for instruction in function.instructions:
        line = _line_of(instruction)
        if instruction.opcode != "tt.dot" or line is None:
            continue
        for origin in values.definitions(instruction.operands.reads[:2], _PASSES_VALUES):
            if (origin_line := _line_of(origin)) is not None:
                lines[line].add(origin_line)
    return {line: frozenset(origins) for line, origins in lines.items()}


def _wide_integer_lines(function: Function, module: Module) -> Iterator[str]:
    for instruction in function.instructions:
        name = instruction.opcode
        if name in ("arith.muli", "arith.divsi", "arith.remsi", "arith.divui", "arith.remui"):
            types, line = _types(instruction, module), _line_of(instruction)
            if line is not None and types and types[-1].element == "i64":
                yield line


def _most_elements(function: Function, module: Module) -> int | None:
    sizes = [
        tile.elements
        for instruction in function.instructions
        for tile in _types(instruction, module)
        if not tile.is_memory
    ]
    return max(sizes, default=None)


def _types(instruction: Instruction, module: Module) -> tuple[TensorType, ...]:
    return format_of(module.stage).tensor_types(instruction, module)

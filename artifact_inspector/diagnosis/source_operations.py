"""What each source line of a kernel computes, from its tensor-level IR."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from artifact_inspector.analysis.flow.control_flow import find_control_flow
from artifact_inspector.diagnosis.address_ranges import NamedInstruction, RangeAnalysis, name_values
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Function, Instruction, Module, SourceLine, Stage
from artifact_inspector.model.tensor import TensorType

_BYTES = ("i8", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ")
_WIDER: Mapping[str, tuple[str, ...]] = {
    "f32": ("f16", "bf16", *_BYTES), "f64": ("f32", "f16", "bf16"), "f16": _BYTES, "bf16": _BYTES
}  # fmt: skip
"""Operand type of a dot → the loaded types that a matrix unit multiplies without conversion."""
CONVERSIONS = (
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "tt.fp_to_fp",
)  # fmt: skip
_WIDENS = ("arith.extf", "arith.sitofp", "arith.uitofp", "tt.fp_to_fp")
DIVISIONS = ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
_SLOW_ON_64_BITS = (
    "arith.muli", "tt.mulhiui", "arith.shli", "arith.shrsi", "arith.shrui", "arith.minsi", "arith.maxsi",
    "arith.minui", "arith.maxui",
)  # fmt: skip
"""Several instructions each, unlike the sums and masks of addresses."""
DOTS = ("tt.dot", "tt.dot_scaled")
_PHILOX_PRODUCTS = 20
"""High products of a Philox generator: two in each of ten rounds, without those that no used number needs."""
_PASSES_VALUES = ("tt.reshape", "tt.trans", "ttg.convert_layout", *_WIDENS)
_REDUCTIONS = ("tt.reduce", "tt.scan")


@dataclass(frozen=True, slots=True)
class SourceOperations:
    """Operations by source line, `file.py:line`."""

    operations: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Line → opcodes."""
    converts_layout: frozenset[str] = frozenset()
    """Lines whose value changes its layout."""
    stores_operand: frozenset[str] = frozenset()
    """Lines in loops that store a computed tile to shared memory, and load it in the layout of an operand."""
    wide_integers: frozenset[str] = frozenset()
    """Lines that multiply, divide, shift or compare 64-bit integers per element, or convert them to floats."""
    chained_loads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Line of a load → lines of the loads that its address depends on."""
    unused_random: Mapping[str, int] = field(default_factory=dict)
    """Line that uses fewer than the four random numbers of a Philox generator → the used ones: one of `tl.rand`."""
    divides: frozenset[str] = frozenset()
    """Lines that divide integers by a number that is no constant."""
    dot_tile: tuple[int, int, int] | None = None
    """Rows, columns and depth of the smallest dot."""
    grows_tile: tuple[bool, bool] = (False, False)
    """Whether CTAs with other rows, or other columns, of that dot read the same second, or first, operand."""
    converts_bytes: frozenset[str] = frozenset()
    """Lines that convert integers or 8-bit floats: several instructions, or slow ones, for each element.

    Those of one operand of a dot to the type of the other one are left out: a mixed product needs them."""
    converts_doubles: frozenset[str] = frozenset()
    """Lines that convert to or from 64-bit floats."""
    needed_reductions: frozenset[str] = frozenset()
    """Lines of reductions whose result enters a product."""
    wide_dots: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Line of a dot → type of its operands, narrower type that was loaded."""
    dot_operands: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Line of a dot → lines that load or convert its operands."""
    loops: tuple[frozenset[str], ...] = ()
    """The lines of each loop."""
    scalar_loads: frozenset[str] = frozenset()
    """Lines whose loads all load one element: a warp does so in one request."""
    accessed_elements: Mapping[str, int] = field(default_factory=dict)
    """Line of loads or stores → elements of its smallest tile."""
    most_elements: int | None = None
    """Elements of the largest tile that is loaded or stored; None if none is."""
    is_persistent: bool = False
    """Whether a counted or `while` loop goes from the program id on in steps of the number of CTAs."""
    partitions_storing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Line of a store in several warp-specialised partitions → their names."""

    def multiplies_at(self, line: str | None) -> bool:
        """Whether a line is in a loop with matrix products."""
        return any(line in lines and any(self.has(one, *DOTS) for one in lines) for lines in self.loops)

    def gathers(self, line: str) -> bool:
        """Whether the address of each element that a line loads is a loaded element."""
        return not self.chained_loads.get(line, frozenset()) <= self.scalar_loads

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
    converted, partitions_storing, stores_operand = set(), dict[str, tuple[str, ...]](), frozenset[str]()
    if layouts is not None:
        lowered = _kernel_function(layouts, artifact.name)
        partitions_storing = _partitions_storing(lowered)
        stores_operand = frozenset(_stored_operands(lowered))
        for instruction in lowered.instructions:
            if instruction.kind is EventKind.LAYOUT_CONVERSION and (line := _line_of(instruction)) is not None:
                converted.add(line)
    values = _ValueGraph(function)
    loads = [instruction for instruction in function.instructions if instruction.opcode == "tt.load"]
    of_tiles = {_line_of(load) for load in loads if _types(load, module)}
    return SourceOperations(
        operations={line: frozenset(names) for line, names in operations.items()},
        converts_layout=frozenset(converted),
        stores_operand=stores_operand,
        wide_integers=frozenset(_wide_integer_lines(function, module)),
        chained_loads=_chained_loads(values),
        unused_random=_unused_random(function),
        divides=frozenset(_dividing_lines(values)),
        dot_tile=_dot_tile(function, module),
        grows_tile=_grows_tile(function),
        converts_bytes=frozenset(_conversion_lines(function, module)) - set(_mixed_operands(module, values)),
        converts_doubles=frozenset(_conversion_lines(function, module, lambda types: "f64" in types)),
        needed_reductions=frozenset(_needed_reductions(values)),
        wide_dots=dict(_wide_dots(module, values)),
        dot_operands=_dot_operands(values),
        loops=_loop_lines(function),
        scalar_loads=frozenset(line for load in loads if (line := _line_of(load)) and line not in of_tiles),
        accessed_elements=_accessed_elements(function, module),
        most_elements=_most_elements(function, module),
        is_persistent=_is_persistent(function),
        partitions_storing=partitions_storing,
    )


def _is_persistent(function: Function) -> bool:
    analysis = RangeAnalysis(function)
    ids = set().union(*analysis.program_ids().values())
    # of `pid - NUM_SMS`, to which the first iteration adds the step
    ids |= {one.results[0] for one in analysis.instructions("arith.subi") if analysis.copied(one.reads[0]) in ids}
    walks = [(start, step) for start, _, step in analysis.loops().values()] + [*analysis.carried()]
    steps = [step for start, step in walks if analysis.copied(start) in ids]
    values = analysis.evaluate({}, (2, 2, 2)).values if steps else {}
    return any(step not in values or values[step].high != 1 for step in steps)


def _unused_random(function: Function) -> dict[str, int]:
    """Each uniform number is a converted integer; randint converts none, and is left out."""
    opcodes = Counter((_line_of(one), one.opcode) for one in function.instructions)
    products = {line: count for (line, opcode), count in opcodes.items() if opcode == "tt.mulhiui" and line}
    generators = {line: round(count / _PHILOX_PRODUCTS) for line, count in products.items()}
    used = {line: opcodes[line, "arith.sitofp"] / count for line, count in generators.items() if count}
    return {line: int(count) for line, count in used.items() if count in (1, 2)}


def _kernel_function(module: Module, name: str) -> Function:
    named = [function for function in module.functions if function.name == name]
    return named[0] if named else module.functions[0]


def _line_of(instruction: Instruction) -> str | None:
    return None if not instruction.location else SourceLine.from_location(instruction.location).innermost


class _ValueGraph:
    """Which operations define the value of a name."""

    def __init__(self, function: Function) -> None:
        self.producers: dict[str, NamedInstruction] = {}
        self.sources: defaultdict[str, list[str]] = defaultdict(list)
        self.instructions, flows = name_values(function)
        for named in self.instructions:
            self.producers.update(dict.fromkeys(named.results, named))
        for flow in (flow for at in flows.values() for flow in at):
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
            producer = self.producers.get(name)
            if producer is None:
                continue
            opcode = producer.instruction.opcode
            yield producer.instruction
            passes = opcode in through if through is not None else opcode != "tt.load"
            if passes and not opcode.startswith("scf."):
                worklist += producer.reads


def _chained_loads(values: _ValueGraph) -> dict[str, frozenset[str]]:
    lines: defaultdict[str, set[str]] = defaultdict(set)
    for instruction, _, reads in values.instructions:
        line = _line_of(instruction)
        if instruction.opcode != "tt.load" or line is None:
            continue
        for origin in values.definitions(reads[:1]):
            if origin.opcode == "tt.load" and (origin_line := _line_of(origin)) is not None:
                lines[line].add(origin_line)
    return {line: frozenset(origins) for line, origins in lines.items()}


def _dividing_lines(values: _ValueGraph) -> Iterator[str]:
    """A division by a constant is a multiplication or a shift."""
    for instruction, _, reads in values.instructions:
        line = _line_of(instruction)
        if instruction.opcode in DIVISIONS and line is not None:
            divisor = values.definitions(reads[1:2], ("tt.splat", "tt.broadcast"))
            if all(one.opcode != "arith.constant" for one in divisor):
                yield line


def _grows_tile(function: Function) -> tuple[bool, bool]:
    analysis = RangeAnalysis(function)
    ids = analysis.program_ids()
    divided = {name for one in analysis.instructions(*DIVISIONS) for name in analysis.origins(one.reads[0])}
    swizzled = {axis for axis, names in ids.items() if not divided.isdisjoint(names)}
    for dot in analysis.instructions(*DOTS):
        rows, columns = (
            {axis for axis, names in ids.items() if not names.isdisjoint(analysis.origins(operand))}
            for operand in dot.reads[:2]
        )
        return bool(rows - columns or rows & swizzled), bool(columns - rows or columns & swizzled)
    return False, False


def _dot_tile(function: Function, module: Module) -> tuple[int, int, int] | None:
    tiles = []
    for instruction in function.instructions:
        types = [tile for tile in _types(instruction, module) if len(tile.shape) == 2]
        if instruction.opcode in DOTS and len(types) > 2:
            tiles.append((types[0].shape[0], types[1].shape[1], types[0].shape[1]))
    return min(tiles, default=None, key=lambda tile: tile[0] * tile[1] * tile[2])


def _wide_dots(module: Module, values: _ValueGraph) -> Iterator[tuple[str, tuple[str, str]]]:
    """Both operands are loaded with fewer bits, or one is, and the other is computed from wide products."""
    for instruction, _, reads in values.instructions:
        line, types = _line_of(instruction), _types(instruction, module)
        if instruction.opcode != "tt.dot" or line is None or not types:
            continue
        loaded = [_loaded_type(operand, module, values) for operand in reads[:2]]
        wide = types[0].element
        narrow = [one for one in loaded if one in _WIDER.get(wide, ())]
        can_round = wide in ("f32", "f64") and narrow and narrow[0] not in _BYTES
        if len(narrow) == 2 or (narrow and can_round and None in loaded):
            yield line, (wide, str(narrow[0]))


def _loaded_type(operand: str, module: Module, values: _ValueGraph) -> str | None:
    """Element type with which an operand is loaded; None if it is computed."""
    for origin in values.definitions([operand], _PASSES_VALUES):
        types = _types(origin, module)
        if origin.opcode in ("tt.load", "tt.descriptor_load") and types:
            return types[-1].element.removeprefix("!tt.ptr<").rstrip(">")
    return None


def _needed_reductions(values: _ValueGraph) -> Iterator[str]:
    """Reductions whose result enters a product, as in attention: no later one can replace them."""
    for instruction, _, reads in values.instructions:
        if instruction.opcode in DOTS:
            for origin in values.definitions(reads[:2]):
                if origin.opcode in _REDUCTIONS and (line := _line_of(origin)) is not None:
                    yield line


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


def _dot_operands(values: _ValueGraph) -> dict[str, frozenset[str]]:
    lines: defaultdict[str, set[str]] = defaultdict(set)
    for instruction, _, reads in values.instructions:
        line = _line_of(instruction)
        if instruction.opcode != "tt.dot" or line is None:
            continue
        for origin in values.definitions(reads[:2], _PASSES_VALUES):
            if (origin_line := _line_of(origin)) is not None:
                lines[line].add(origin_line)
    return {line: frozenset(origins) for line, origins in lines.items()}


def _stored_operands(function: Function) -> Iterator[str]:
    """Lines of tiles that are stored to shared memory only to be loaded in another layout, in loops."""
    flow, values = find_control_flow(function), _ValueGraph(function)
    loaded = {name for one in values.instructions if one.instruction.opcode == "ttg.local_load" for name in one.reads}
    for index, (instruction, results, reads) in enumerate(values.instructions):
        line = _line_of(instruction)
        if instruction.opcode != "ttg.local_alloc" or loaded.isdisjoint(results) or flow.loop_at(index) is None:
            continue
        origins = {one.kind for one in values.definitions(reads, _PASSES_VALUES)}
        if origins and line is not None and origins.isdisjoint((EventKind.GLOBAL_LOAD, EventKind.SHARED_LOAD)):
            yield line


def _wide_integer_lines(function: Function, module: Module) -> Iterator[str]:
    for instruction in function.instructions:
        name = instruction.opcode
        types, line = _types(instruction, module), _line_of(instruction)
        if line is None or not types:
            continue
        computes = name in (*_SLOW_ON_64_BITS, *DIVISIONS) and types[-1].element == "i64"
        if computes or (name in CONVERSIONS and any(tile.element == "i64" for tile in types)):
            yield line


def _conversion_lines(
    function: Function,
    module: Module,
    accepts: Callable[[set[str]], bool] = lambda elements: not elements <= {"f16", "bf16", "f32"},
) -> Iterator[str]:
    for instruction in function.instructions:
        line = _line_of(instruction)
        if line is None or instruction.opcode not in CONVERSIONS:
            continue
        if accepts({tile.element for tile in _types(instruction, module)}):
            yield line


def _mixed_operands(module: Module, values: _ValueGraph) -> Iterator[str]:
    """Lines that convert an operand of a dot whose other operand is loaded with the dot's type."""
    for instruction, _, reads in values.instructions:
        types = _types(instruction, module)
        if instruction.opcode != "tt.dot" or not types:
            continue
        for operand, other in (reads[:2], reads[1::-1]):
            if _loaded_type(other, module, values) == types[0].element != _loaded_type(operand, module, values):
                for origin in values.definitions([operand]):
                    if origin.opcode in CONVERSIONS and (line := _line_of(origin)) is not None:
                        yield line


def _accessed_elements(function: Function, module: Module) -> dict[str, int]:
    elements: dict[str, int] = {}
    for instruction in function.instructions:
        if instruction.opcode in ("tt.load", "tt.store") and (line := _line_of(instruction)) is not None:
            size = max((tile.elements for tile in _types(instruction, module)), default=1)
            elements[line] = min(size, elements.get(line, size))
    return elements


def _most_elements(function: Function, module: Module) -> int | None:
    sizes = [
        tile.elements
        for instruction in function.instructions
        for tile in _types(instruction, module)
        if not tile.is_memory
    ]
    return max(sizes, default=None)


def _partitions_storing(function: Function) -> dict[str, tuple[str, ...]]:
    """Each partition that multiplies counts once for a line of its stores."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for partition in function.partitions:
        blocks = function.blocks[partition.first : partition.stop]
        inside = function.instructions[blocks[0].start : blocks[-1].stop]
        if any(instruction.kind is EventKind.MATRIX for instruction in inside):
            for line in {_line_of(one) for one in inside if one.kind is EventKind.GLOBAL_STORE} - {None}:
                names[str(line)].append(partition.name)
    return {line: tuple(several) for line, several in names.items() if len(several) > 1}


def _types(instruction: Instruction, module: Module) -> tuple[TensorType, ...]:
    return format_of(module.stage).tensor_types(instruction, module)

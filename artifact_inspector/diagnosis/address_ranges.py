"""Ranges of the integers and addresses of a kernel, from its TTIR, for given arguments and a given grid.

Interval arithmetic over the text: program ids, `tl.arange`, loops with their trip counts, and values loaded from
integer tensors. Not read: descriptors, `while` loops, and what goes through floats.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.analysis.flow.traversal import reachable
from artifact_inspector.model import Flow, Function, Instruction

_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d+|true|false)>? :")
_RANGE_END = re.compile(r"end = (\d+)")
_AXIS = re.compile(r"(?:get_program_id|get_num_programs) ([xyz])")
_PREDICATE = re.compile(r"arith\.cmpi (\w+),")
_PASSING = (
    "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "arith.extsi", "arith.extui",
    "arith.trunci", "arith.index_cast", "ttg.convert_layout", "tt.bitcast",
)  # fmt: skip
_MOST_BITS = 1 << 62


class NamedInstruction(NamedTuple):
    """An instruction with unique names."""

    instruction: Instruction
    results: tuple[str, ...]
    reads: tuple[str, ...]


def name_values(function: Function) -> tuple[Sequence[NamedInstruction], Mapping[int, Sequence[Flow]]]:
    """Instructions and flows (by index) with a name for each value, which MLIR reuses in sibling regions.

    First uses keep their name.
    """
    current: dict[str, str] = {name: name for name in function.arguments}
    by_index: defaultdict[int, list[Flow]] = defaultdict(list)
    for flow in function.flows:
        by_index[flow.instruction_index].append(flow)
    used = set(current)

    def define(name: str, index: int) -> str:
        unique = name if name not in used else f"{name}@{index}"
        used.add(unique)
        current[name] = unique
        return unique

    named: list[NamedInstruction] = []
    flows: defaultdict[int, list[Flow]] = defaultdict(list)
    owned: dict[tuple[int, str], str] = {}
    for index, instruction in enumerate(function.instructions):
        operands = instruction.operands
        is_loop = instruction.opcode == "scf.for"
        entering = [flow for flow in by_index.get(index, ()) if flow.owner == index]
        sources = {flow: current.get(flow.source, flow.source) for flow in by_index.get(index, ())}
        reads = [current.get(name, name) for name in operands.reads]
        if is_loop and operands.reads:
            reads[0] = define(operands.reads[0], index)
        for flow in entering:
            owned[index, flow.target] = define(flow.target, index)
        results = tuple(define(name, index) for name in operands.results)
        named.append(NamedInstruction(instruction, results, tuple(reads)))
        for flow in by_index.get(index, ()):
            key = (flow.owner, flow.target)
            if key not in owned:
                owned[key] = define(flow.target, index)
            flows[index].append(flow._replace(source=sources[flow], target=owned[key]))
    return named, flows


class ValueRange(NamedTuple):
    """The lowest and highest value, or offset in elements from the base of a tensor."""

    low: int
    high: int
    base: str | None = None
    """The pointer argument that it is an offset from."""

    def joined(self, other: ValueRange) -> ValueRange:
        """The range of both."""
        return ValueRange(min(self.low, other.low), max(self.high, other.high), self.base or other.base)


class BoundComparison(NamedTuple):
    """A comparison of a value with a bound that is less or equal in masks."""

    value: str
    bound: str


class KernelRanges(NamedTuple):
    """The ranges of a kernel."""

    values: Mapping[str, ValueRange]
    elements: Mapping[str, int]
    """Tensor → elements up to the last one that is accessed."""


def _corners(operation: Callable[[int, int], int]) -> Callable[[ValueRange, ValueRange], tuple[int, int]]:
    def apply(left: ValueRange, right: ValueRange) -> tuple[int, int]:
        values = [operation(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return min(values), max(values)

    return apply


def _divided(value: int, divisor: int) -> int:
    return value if divisor == 0 else abs(value) // abs(divisor) * (1 if (value < 0) == (divisor < 0) else -1)


def _remainder(left: ValueRange, right: ValueRange) -> tuple[int, int]:
    most = max(abs(right.low), abs(right.high)) - 1
    is_unchanged = left.low >= 0 and left.high < min(abs(right.low), abs(right.high))
    return (left.low, left.high) if is_unchanged else (min(0, max(left.low, -most)), max(0, min(left.high, most)))


_BINARY: Mapping[str, Callable[[ValueRange, ValueRange], tuple[int, int]]] = {
    "arith.addi": lambda a, b: (a.low + b.low, a.high + b.high),
    "arith.subi": lambda a, b: (a.low - b.high, a.high - b.low), "arith.muli": _corners(lambda a, b: a * b),
    "arith.divsi": _corners(_divided), "arith.divui": _corners(_divided), "arith.remsi": _remainder,
    "arith.remui": _remainder,
    "arith.andi": lambda a, b: (0, min((one.high for one in (a, b) if one.low >= 0), default=0)),
    "arith.minsi": lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    "arith.maxsi": lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
    "arith.minui": lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    "arith.maxui": lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
    "arith.shli": _corners(lambda a, b: a << min(max(b, 0), 40)),
    "arith.shrsi": _corners(lambda a, b: a >> min(max(b, 0), 63)),
    "arith.shrui": _corners(lambda a, b: a >> min(max(b, 0), 63))
}  # fmt: skip


class RangeAnalysis:
    """Evaluates a kernel for arguments and grids."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._named, self._flows = name_values(function)
        self.sources: defaultdict[str, set[str]] = defaultdict(set)
        """Value → the values that it is computed from."""
        self._passed: defaultdict[str, set[str]] = defaultdict(set)
        for flow in (flow for flows in self._flows.values() for flow in flows):
            self.sources[flow.target].add(flow.source)
            self._passed[flow.target].add(flow.source)
        for named in self._named:
            for result in named.results:
                self.sources[result].update(named.reads)
        for loop, bounds in self.loops().items():
            self.sources[loop].update(bounds)

    def loops(self) -> dict[str, tuple[str, ...]]:
        """Induction variable of each counted loop → its start, stop and step."""
        return {
            named.reads[0]: named.reads[1:4]
            for named in self._named
            if named.instruction.opcode == "scf.for" and len(named.reads) > 3
        }

    def carried(self) -> Iterator[tuple[str, str]]:
        """Each start and step of a value to which iterations add: `tile += NUM_SMS`."""
        for _, results, reads in self.instructions("arith.addi"):
            origins = reachable(reads[:1], lambda name: self._passed.get(name, ()))
            if results[0] in origins:
                yield from ((start, reads[1]) for start in origins if start not in self._passed and start != results[0])

    def comparisons(self) -> list[BoundComparison]:
        """The integer comparisons `value < bound` and `value <= bound`."""
        pairs = []
        for instruction, _, reads in self.instructions("arith.cmpi"):
            match = _PREDICATE.search(instruction.text)
            if match is not None and len(reads) == 2 and match[1] in ("slt", "sle", "ult", "ule"):
                pairs.append(BoundComparison(*reads))
        return pairs

    def origins(self, name: str) -> set[str]:
        """All values that a value depends on, itself included."""
        return set(reachable([name], lambda one: self.sources.get(one, ())))

    def copied(self, name: str) -> str:
        """What a value is a copy of: the argument of a splat, the narrow integer of an extension."""
        while len(sources := self.sources.get(name, set())) == 1:
            name = next(iter(sources))
        return name

    def program_ids(self) -> dict[int, set[str]]:
        """Axis of the grid → names of its program id."""
        names: defaultdict[int, set[str]] = defaultdict(set)
        for instruction, results, _ in self.instructions("tt.get_program_id"):
            match = _AXIS.search(instruction.text)
            if match is not None:
                names["xyz".index(match[1])].update(results)
        return dict(names)

    def instructions(self, *opcodes: str) -> list[NamedInstruction]:
        """Instructions with these opcodes."""
        return [named for named in self._named if named.instruction.opcode in opcodes]

    def evaluate(
        self, numbers: Mapping[str, int], grid: Sequence[int], index_bounds: Mapping[str, int] = {}
    ) -> KernelRanges:
        """The ranges for a launch.

        Args:
            numbers: argument → value.
            grid: CTAs along each axis.
            index_bounds: tensor → values in it are less; 1 for other tensors.
        """
        values: dict[str, ValueRange] = {}
        for name, kind in zip(self.function.arguments, self.function.signature, strict=False):
            plain = name.lstrip("%")
            if kind.startswith("*"):
                values[name] = ValueRange(0, 0, plain)
            elif plain in numbers:
                values[name] = ValueRange(numbers[plain], numbers[plain])
        elements: dict[str, int] = {}
        trips: dict[int, int] = {}
        extended: set[int] = set()
        at = 0
        while at < len(self._named):
            instruction, results, names = self._named[at]
            reads = [values.get(name) for name in names]
            if instruction.opcode == "scf.for" and len(reads) > 3:
                trips[at] = self._enter_loop(names, values)
            elif (result := _evaluate(instruction, reads, grid, index_bounds)) is not None:
                values.update(dict.fromkeys(results, result))
            if instruction.opcode.startswith(("tt.load", "tt.store", "tt.atomic")) and reads and reads[0] is not None:
                address = reads[0]
                if address.base is not None:
                    elements[address.base] = max(elements.get(address.base, 0), address.high + 1)
            at = self._pass_values(at, values, trips, extended)
        return KernelRanges(values, elements)

    def _enter_loop(self, reads: Sequence[str], values: dict[str, ValueRange]) -> int:
        start, stop, step = (values.get(name) for name in reads[1:4])
        if start is None or stop is None or step is None:
            return 1
        trips = max(1, -(-(stop.high - start.low) // max(1, step.low)))
        values[reads[0]] = ValueRange(start.low, max(start.low, start.high + (trips - 1) * step.low))
        return trips

    def _pass_values(self, at: int, values: dict[str, ValueRange], trips: Mapping[int, int], extended: set[int]) -> int:
        """Apply the flows of an instruction; the index of the next one, which is the loop's first if it runs again."""
        flows = self._flows.get(at, ())
        back = [flow for flow in flows if flow.is_back_edge]
        if back and back[0].owner not in extended:
            owner = back[0].owner
            extended.add(owner)
            more = trips.get(owner, 1) - 1
            for flow in back:
                first, second = values.get(flow.target), values.get(flow.source)
                if first is not None and second is not None:
                    step_low, step_high = second.low - first.low, second.high - first.high
                    values[flow.target] = ValueRange(
                        max(-_MOST_BITS, first.low + min(0, step_low * more)),
                        min(_MOST_BITS, first.high + max(0, step_high * more)),
                        first.base,
                    )
            return owner + 1
        for flow in flows:
            source = values.get(flow.source)
            if source is not None and not flow.is_back_edge:
                joins = flow.owner != at and flow.target in values and not back
                values[flow.target] = values[flow.target].joined(source) if joins else source
        if back:
            extended.discard(back[0].owner)
        return at + 1


def _evaluate(
    instruction: Instruction, reads: Sequence[ValueRange | None], grid: Sequence[int], index_bounds: Mapping[str, int]
) -> ValueRange | None:
    name, text = instruction.opcode, instruction.text
    if name == "arith.constant":
        match = _CONSTANT.search(text)
        if match is None:
            return None
        number = {"true": 1, "false": 0}.get(match[1])
        number = int(match[1]) if number is None else number
        return ValueRange(number, number)
    if name == "tt.make_range":
        match = _RANGE_END.search(text)
        return None if match is None else ValueRange(0, int(match[1]) - 1)
    if name in ("tt.get_program_id", "tt.get_num_programs"):
        match = _AXIS.search(text)
        extent = 1 if match is None else grid["xyz".index(match[1])]
        return ValueRange(0, extent - 1) if name == "tt.get_program_id" else ValueRange(extent, extent)
    if name == "arith.select" and len(reads) > 2 and reads[1] is not None and reads[2] is not None:
        return reads[1].joined(reads[2])
    if not reads or reads[0] is None:
        return None
    if name in _PASSING:
        return reads[0]
    if name == "tt.load":
        return None if reads[0].base is None else ValueRange(0, index_bounds.get(reads[0].base, 1) - 1)
    if len(reads) < 2 or reads[1] is None:
        return None
    if name == "tt.addptr":
        return ValueRange(reads[0].low + reads[1].low, reads[0].high + reads[1].high, reads[0].base)
    if name in _BINARY:
        low, high = _BINARY[name](reads[0], reads[1])
        return ValueRange(max(-_MOST_BITS, low), min(_MOST_BITS, high), reads[0].base)
    return None

"""Proves from the masks of a kernel's TTIR that no access leaves its tensor, whatever the sizes are.

Offsets and compares are polynomials over sizes, program ids, `tl.arange` and loop variables, none of which is negative.
An offset is split into an index for each dimension, which must be below its extent by the mask, by the end of an
arange, or because the grid has that extent. Not proven: pointers that a loop carries, descriptors, loaded indices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from artifact_inspector.diagnosis.address_ranges import NamedInstruction, name_values
from artifact_inspector.model import Function

Monomial: TypeAlias = tuple[str, ...]
Polynomial: TypeAlias = Mapping[Monomial, int]
Dimensions: TypeAlias = Sequence[tuple[Polynomial, Polynomial]]
"""Extent and stride of each dimension, the largest stride first."""

_CONSTANT = re.compile(r"arith\.constant (?:dense<)?(-?\d+)>? : (?:tensor<[\dx]*)?i(?!1\b)\d+")
_RANGE_END = re.compile(r"end = (\d+)")
_AXIS = re.compile(r"get_program_id ([xyz])")
_PREDICATE = re.compile(r"arith\.cmpi (\w+),")
_EXPANDED_AXIS = re.compile(r"axis = (\d)")
_PASSING = ("tt.splat", "tt.broadcast", "arith.extsi", "arith.extui", "arith.index_cast")
_MASK_POSITION = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}
_UNREAD = ("tt.call", "inline_asm", "descriptor", "tt.atomic_cas", "int_to_ptr", "scf.while", "extern")


class _Access(NamedTuple):
    instruction: NamedInstruction
    tensor: str
    offset: Polynomial
    constraints: tuple[Polynomial, ...]
    """Polynomials that are negative where the mask holds."""


def constant(number: int) -> Polynomial:
    """A number."""
    return {(): number} if number else {}


def atom(name: str) -> Polynomial:
    """A variable that is not negative."""
    return {(name,): 1}


def add(left: Polynomial, right: Polynomial, factor: int = 1) -> Polynomial:
    """`left + factor · right`."""
    total = dict(left)
    for monomial, count in right.items():
        total[monomial] = total.get(monomial, 0) + factor * count
    return {monomial: count for monomial, count in total.items() if count}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product."""
    total: Polynomial = {}
    for first, a in left.items():
        for second, b in right.items():
            total = add(total, {tuple(sorted((*first, *second))): a * b})
    return total


def proves_all_accesses(
    function: Function,
    numbers: Mapping[str, Polynomial],
    tensors: Mapping[str, Sequence[Dimensions]],
    grid: Mapping[str, Polynomial],
) -> bool:
    """Whether every access of a kernel is proven to be inside of its tensor.

    Args:
        numbers: integer argument → its value.
        tensors: pointer argument → ways to see its shape.
        grid: axis → extent, for those that are a size.
    """
    named, _ = name_values(function)
    if any(word in operation.instruction.opcode for operation in named for word in _UNREAD):
        return False
    reader = _Reader(function, named, numbers)
    accesses = reader.accesses()
    return bool(accesses) and all(
        access is not None
        and any(_is_inside(access, shape, reader.ends, grid) for shape in tensors.get(access.tensor, ()))
        for access in accesses
    )


class _Reader:
    def __init__(
        self, function: Function, named: Sequence[NamedInstruction], numbers: Mapping[str, Polynomial]
    ) -> None:
        self._named = named
        self.ends: dict[str, int] = {}
        """Variable of an arange → the first number that it does not have."""
        self.values: dict[str, Polynomial] = {f"%{name}": value for name, value in numbers.items()}
        arguments = zip(function.arguments, function.signature, strict=False)
        self.pointers: dict[str, tuple[str, Polynomial]] = {
            name: (name.lstrip("%"), {}) for name, kind in arguments if kind.startswith("*")
        }
        self.masks: dict[str, tuple[Polynomial, ...]] = {}

    def accesses(self) -> list[_Access | None]:
        """The accesses; None for one that cannot be read."""
        found: list[_Access | None] = []
        for operation in self._named:
            opcode, reads = operation.instruction.opcode, operation.reads
            position = _MASK_POSITION.get(opcode)
            if position is not None:
                pointer = self.pointers.get(reads[0])
                mask = self.masks.get(reads[position], ()) if len(reads) > position else ()
                found.append(None if pointer is None else _Access(operation, *pointer, mask))
            elif operation.results:
                self._read(operation.results[0], opcode, operation.instruction.text, reads)
            elif opcode == "scf.for" and len(reads) > 3:
                self._enter_loop(reads)
        return found

    def _enter_loop(self, reads: Sequence[str]) -> None:
        start, step = self.values.get(reads[1]), self.values.get(reads[3])
        if start is not None and step is not None and all(count > 0 for one in (start, step) for count in one.values()):
            self.values[reads[0]] = atom(f"loop {reads[0]}")

    def _read(self, result: str, opcode: str, text: str, reads: Sequence[str]) -> None:
        if opcode == "arith.constant" and (match := _CONSTANT.search(text)):
            self.values[result] = constant(int(match[1]))
        elif opcode == "tt.get_program_id" and (match := _AXIS.search(text)):
            self.values[result] = atom(f"pid {match[1]}")
        elif opcode == "tt.make_range" and (match := _RANGE_END.search(text)) and "start = 0" in text:
            self.values[result] = atom(f"range {result}")
            self.ends[f"range {result}"] = int(match[1])
        elif opcode == "arith.cmpi":
            self._compare(result, text, reads)
        elif opcode == "arith.andi" and any(operand in self.masks for operand in reads):
            self.masks[result] = tuple(part for operand in reads for part in self.masks.get(operand, ()))
        elif opcode in _PASSING or opcode == "tt.expand_dims":
            self._pass(result, opcode, text, reads[0])
        elif opcode in ("arith.addi", "arith.subi", "arith.muli") and all(
            operand in self.values for operand in reads[:2]
        ):
            left, right = (self.values[operand] for operand in reads[:2])
            sign = -1 if opcode == "arith.subi" else 1
            self.values[result] = multiply(left, right) if opcode == "arith.muli" else add(left, right, sign)
        elif opcode == "tt.addptr" and reads[1] in self.values and (pointer := self.pointers.get(reads[0])):
            self.pointers[result] = (pointer[0], add(pointer[1], self.values[reads[1]]))

    def _compare(self, result: str, text: str, reads: Sequence[str]) -> None:
        match = _PREDICATE.search(text)
        if match is None or not all(operand in self.values for operand in reads[:2]):
            return
        left, right = (self.values[operand] for operand in reads[:2])
        if match[1] in ("sgt", "sge", "ugt", "uge"):
            left, right = right, left
        if match[1][1:] in ("lt", "gt", "le", "ge"):
            slack = -1 if match[1].endswith("e") else 0
            self.masks[result] = (add(add(left, right, -1), constant(slack)),)

    def _pass(self, result: str, opcode: str, text: str, source: str) -> None:
        axis = match[1] if opcode == "tt.expand_dims" and (match := _EXPANDED_AXIS.search(text)) else None
        if source in self.values:
            self.values[result] = self._along(self.values[source], axis)
        if source in self.pointers:
            base, offset = self.pointers[source]
            self.pointers[result] = (base, self._along(offset, axis))
        if source in self.masks:
            self.masks[result] = tuple(self._along(bound, axis) for bound in self.masks[source])

    def _along(self, value: Polynomial, axis: str | None) -> Polynomial:
        """The polynomial with ranges of another axis: one arange may be used for rows and for columns."""
        if axis is None:
            return value
        renamed: Polynomial = {}
        for monomial, count in value.items():
            names = tuple(sorted(f"{factor} @{axis}" if factor.startswith("range") else factor for factor in monomial))
            for old, new in ((factor, f"{factor} @{axis}") for factor in monomial if factor.startswith("range")):
                self.ends[new] = self.ends[old]
            renamed = add(renamed, {names: count})
        return renamed


def _is_inside(access: _Access, shape: Dimensions, ends: Mapping[str, int], grid: Mapping[str, Polynomial]) -> bool:
    rest = access.offset
    for extent, stride in shape:
        index, rest = _divide(rest, stride)
        is_positive = all(count > 0 for count in index.values())
        if not is_positive or not _is_below(index, extent, access.constraints, ends, grid):
            return False
    return not rest


def _divide(value: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The quotient by a polynomial of one monomial, and what it does not divide."""
    ((names, factor),) = divisor.items()
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, count in value.items():
        remaining = list(monomial)
        divides = count % factor == 0
        for name in names:
            divides = divides and name in remaining
            if divides:
                remaining.remove(name)
        if divides:
            quotient[tuple(remaining)] = count // factor
        else:
            rest[monomial] = count
    return quotient, rest


def _is_below(
    index: Polynomial,
    extent: Polynomial,
    constraints: Sequence[Polynomial],
    ends: Mapping[str, int],
    grid: Mapping[str, Polynomial],
) -> bool:
    """Whether an index is below an extent."""
    difference = add(index, extent, -1)
    gaps = [add(difference, constraint, -1) for constraint in constraints]
    if any(not gap or (set(gap) == {()} and gap[()] <= 0) for gap in gaps):
        return True
    if set(extent) == {()} and all(len(names) == 1 and names[0] in ends for names in index if names):
        most = sum(count * (ends[names[0]] - 1) if names else count for names, count in index.items())
        return most < extent[()]
    return any(index == atom(f"pid {axis}") and size == extent for axis, size in grid.items())

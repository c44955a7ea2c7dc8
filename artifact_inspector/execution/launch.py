"""A launch: the grid, and the value of every kernel argument."""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from artifact_inspector.errors import UsageError

BITS: Mapping[str, int] = {
    "bool": 8, "int8": 8, "uint8": 8, "i8": 8, "u8": 8, "i1": 8, "u1": 8, "int16": 16, "uint16": 16,
    "i16": 16, "u16": 16, "int32": 32, "uint32": 32, "i32": 32, "u32": 32, "int64": 64, "uint64": 64,
    "i64": 64, "u64": 64, "float16": 16, "fp16": 16, "f16": 16, "half": 16, "bfloat16": 16, "bf16": 16,
    "float32": 32, "fp32": 32, "f32": 32, "float": 32, "float64": 64, "fp64": 64, "f64": 64, "double": 64,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
    "fp8e4nv": 8, "fp8e5": 8, "fp8e4b15": 8, "fp8e4b8": 8, "fp8e5b16": 8, "long": 64, "int": 32, "short": 16,
    "float4_e2m1fn_x2": 8,
}  # fmt: skip
"""Bits per element, by the type names of torch and Triton."""

FIRST = 0x7000_0000_0000
"""Address of the first tensor without one: above 2³², as the driver allocates."""
SCRATCH = "Triton's global scratch memory"
"""Name of the global scratch memory of a launch, where CTAs build tensor maps."""
APART = 1 << 34
"""Bytes between tensors without an address, so that an out-of-bounds lane does not hit another tensor."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument."""

    shape: tuple[int, ...]
    dtype: str
    """Type name of torch or Triton, without `torch.`: `float16`, `fp16`."""
    stride: tuple[int, ...] = ()
    """In elements; contiguous if empty."""
    pointer: int | None = None
    """Its address; None if one is to be assigned."""
    values: tuple[int | float, ...] | None = None
    """All elements in memory order, if given."""

    @property
    def bits(self) -> int:
        """Bits per element."""
        return BITS[self.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements: those given, otherwise those of a contiguous tensor."""
        if self.stride or not self.shape:
            return self.stride
        found, step = [], 1
        for extent in reversed(self.shape):
            found.append(step)
            step *= max(extent, 1)
        return tuple(reversed(found))

    @property
    def bytes(self) -> int:
        """Bytes from the first element to the end of the last one in memory."""
        if any(extent == 0 for extent in self.shape):
            return 0
        last = sum((extent - 1) * abs(step) for extent, step in zip(self.shape, self.strides, strict=True))
        return (last + 1) * self.bits // 8


def encode(given: Any, size: int) -> bytes | None:
    """An argument as little-endian bytes as the kernel receives it; None if it was not given.

    A tensor is passed as its address. A parameter of more than 8 bytes is not a number, and counts as not
    given.
    """
    if isinstance(given, Tensor):
        given = given.pointer
    if given is None or size > 8:
        return None
    if isinstance(given, float):
        try:
            return struct.pack("<f" if size == 4 else "<d", given)[:size]
        except OverflowError:  # as the cast in Triton's launcher
            return struct.pack("<f", math.copysign(math.inf, given))
    return (int(given) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


@dataclass(frozen=True, slots=True)
class Launch:
    """A grid, and the arguments by the kernel's names; constants may be among them."""

    grid: tuple[int, int, int]
    arguments: Mapping[str, Tensor | int | float | bool | None]
    hash: str | None = None
    """Hash of the compiled variant that is launched, if several are known."""
    notes: tuple[str, ...] = field(default=())
    cluster: int = 1
    """CTAs of a cluster, adjacent in x; the grid counts clusters."""

    @property
    def ctas(self) -> int:
        """Number of CTAs."""
        return self.extents[0] * self.extents[1] * self.extents[2]

    @property
    def extents(self) -> tuple[int, int, int]:
        """CTAs in each dimension."""
        return self.grid[0] * self.cluster, self.grid[1], self.grid[2]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors among the arguments."""
        return {name: given for name, given in self.arguments.items() if isinstance(given, Tensor)}


def place(launch: Launch) -> Launch:
    """The launch with an address for every tensor, spaced as an allocator would."""
    taken = [given.pointer + given.bytes for given in launch.tensors.values() if given.pointer is not None]
    at = max([FIRST, *(-(-end // APART) * APART for end in taken)])
    arguments: dict[str, Any] = {}
    for name, given in launch.arguments.items():
        if isinstance(given, Tensor) and given.pointer is None:
            given = Tensor(given.shape, given.dtype, given.strides, at, given.values)
            at += -(-max(given.bytes, 1) // APART) * APART
        arguments[name] = given
    return replace(launch, arguments=arguments)


# ── Grid expressions ─────────────────────────────────────────────────────────────────────────────

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_NAMED = 50
"""Most names that an error lists."""
_LONGEST = 1_000
"""Longest expression in characters: Python's parser takes 240 bytes for each."""
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "next_power_of_2": lambda a: 1 << max(a - 1, 0).bit_length(),
}


def evaluate_extent(text: str, names: Mapping[str, Any]) -> int:
    """The value of an expression over arguments and constants.

    Raises:
        UsageError: it is too long, or has anything but numbers, names, `+ - * // %` and known functions.

    Example:
        >>> evaluate_extent("cdiv(M, BLOCK_M) * 2", {"M": 100, "BLOCK_M": 64})
        4
    """
    if len(text) > _LONGEST:
        raise UsageError(
            f"Grid expression {text[:40]!r}… is longer than {_LONGEST:,} characters.",
            "Shorten it.",
        )
    try:
        found = _evaluate(ast.parse(text.strip(), mode="eval").body, names, text)
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"Cannot evaluate grid expression {text!r}.",
            "Use numbers and names with + - * // %, cdiv(a, b), min, max and next_power_of_2.",
        ) from error
    return found


def _evaluate(node: ast.expr, names: Mapping[str, Any], text: str) -> int:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            found = names.get(name)
            if isinstance(found, int):
                return int(found)
            numbers = sorted(name for name, given in names.items() if isinstance(given, int))
            known = ", ".join([*numbers[:_NAMED], *(["…"] if len(numbers) > _NAMED else [])])
            raise UsageError(
                f"Grid expression {text!r} uses {name}, which is not a known number.", f"Known: {known}."
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, names, text)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](_evaluate(left, names, text), _evaluate(right, names, text))
        case ast.Call(func=called, args=given, keywords=[]):
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in _FUNCTIONS and given:
                return int(_FUNCTIONS[name](*(_evaluate(argument, names, text) for argument in given)))
    raise ValueError(text)

"""A launch: the grid, and the value of every kernel argument."""

from __future__ import annotations

import ast
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.stored_values import StoredValues, TensorContents

ELEMENT_BITS: Mapping[str, int] = {
    "bool": 8, "int8": 8, "uint8": 8, "i8": 8, "u8": 8, "i1": 8, "u1": 8, "int16": 16, "uint16": 16,
    "i16": 16, "u16": 16, "int32": 32, "uint32": 32, "i32": 32, "u32": 32, "int64": 64, "uint64": 64,
    "i64": 64, "u64": 64, "float16": 16, "fp16": 16, "f16": 16, "half": 16, "bfloat16": 16, "bf16": 16,
    "float32": 32, "fp32": 32, "f32": 32, "float": 32, "float64": 64, "fp64": 64, "f64": 64, "double": 64,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
    "fp8e4nv": 8, "fp8e5": 8, "fp8e4b15": 8, "fp8e4b8": 8, "fp8e5b16": 8, "long": 64, "int": 32, "short": 16,
    "float4_e2m1fn_x2": 8,
}  # fmt: skip
"""Bits per element, by the type names of torch and Triton."""

FIRST_ADDRESS = 0x7000_0000_0000
"""Address of the first tensor without one: above 2³², as the driver allocates."""
SCRATCH_TENSOR = "Triton's global scratch memory"
"""Name of the global scratch memory of a launch, where CTAs build tensor maps."""
TENSOR_SPACING = 1 << 34
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
    values: tuple[int | float, ...] | StoredValues | None = None
    """All elements in memory order, if given."""
    contents: TensorContents | None = None
    """Its bytes before and after the launch, as Triton's interpreter left them."""
    block_shape: tuple[int, ...] = field(default=(), compare=False)
    """Elements of a block, if it is the tensor of a descriptor."""
    storage: tuple[int, int] | None = None
    """The number of its storage, which other arguments may share, and its first byte there; None if it has its own."""
    is_initialized: bool | None = field(default=None, compare=False, repr=False)
    """Whether the program wrote it before the launch; None if unknown."""
    created: int | None = field(default=None, compare=False, repr=False)
    """Number of its storage in the program, if that was created without values."""
    is_filled: bool = field(default=False, compare=False, repr=False)
    """Whether the program itself fills a part of that storage after a launch."""

    @property
    def bits(self) -> int:
        """Bits per element."""
        return ELEMENT_BITS[self.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements: those given, otherwise those of a contiguous tensor."""
        if self.stride or not self.shape:
            return self.stride
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.append(step)
            step *= max(extent, 1)
        return tuple(reversed(strides))

    @property
    def bytes(self) -> int:
        """Bytes from the first element to the end of the last one in memory."""
        if any(extent == 0 for extent in self.shape):
            return 0
        last = sum((extent - 1) * abs(step) for extent, step in zip(self.shape, self.strides, strict=True))
        return (last + 1) * self.bits // 8

    @property
    def bytes_before(self) -> int:
        """Bytes from the first element in memory to the one at the pointer: more than 0 with negative strides."""
        steps = zip(self.shape, self.strides, strict=True)
        return sum((extent - 1) * max(0, -step) for extent, step in steps) * self.bits // 8 if self.bytes else 0


Argument: TypeAlias = Tensor | int | float | None
"""The value of a kernel argument; None if it was not given, or is none."""


def encode_argument(argument: Argument, size: int) -> bytes | None:
    """An argument as little-endian bytes as the kernel receives it; None if it was not given.

    A tensor is passed as its address. A parameter of more than 8 bytes is not a number, and counts as not given.
    """
    if isinstance(argument, Tensor):
        argument = argument.pointer
    if argument is None or size > 8:
        return None
    if isinstance(argument, float):
        try:
            return struct.pack("<f" if size == 4 else "<d", argument)[:size]
        except OverflowError:  # as the cast in Triton's launcher
            return struct.pack("<f", math.copysign(math.inf, argument))
    return (int(argument) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A grid, and the arguments by the kernel's names; constants may be among them."""

    grid: tuple[int, int, int]
    arguments: Mapping[str, Argument]
    kernel_hash: str | None = None
    """Hash of the compiled variant that is launched, if several are known."""
    notes: tuple[str, ...] = field(default=())
    interpreted_ctas: int = 0
    """CTAs that Triton's interpreter ran for the contents of the tensors, the last dimension of the grid fastest."""
    interpreter_problem: str | None = None
    """Why it did not run all of them."""
    cluster_size: int = 1
    """CTAs of a cluster, adjacent in x; the grid counts clusters."""

    @property
    def ctas(self) -> int:
        """Number of CTAs."""
        return self.cta_grid[0] * self.cta_grid[1] * self.cta_grid[2]

    @property
    def cta_grid(self) -> tuple[int, int, int]:
        """CTAs in each dimension."""
        return self.grid[0] * self.cluster_size, self.grid[1], self.grid[2]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors among the arguments."""
        return {name: argument for name, argument in self.arguments.items() if isinstance(argument, Tensor)}


def place_tensors(launch: KernelLaunch, spacing: int = TENSOR_SPACING) -> KernelLaunch:
    """The launch with an address for every tensor; storages are spaced as an allocator would, or further apart."""
    occupied_ends = [
        argument.pointer + argument.bytes for argument in launch.tensors.values() if argument.pointer is not None
    ]
    address = max([FIRST_ADDRESS, *(-(-end // spacing) * spacing for end in occupied_ends)])
    storages = _storage_bytes(launch)
    starts: dict[int, int] = {}
    arguments: dict[str, Argument] = {}
    for name, argument in launch.arguments.items():
        if isinstance(argument, Tensor) and argument.pointer is None:
            number, offset = argument.storage or (-1 - len(arguments), argument.bytes_before)
            if number not in starts:
                starts[number] = address
                address += -(-max(storages.get(number, argument.bytes), 1) // spacing) * spacing
            argument = replace(argument, stride=argument.strides, pointer=starts[number] + offset)
        arguments[name] = argument
    return replace(launch, arguments=arguments)


def _storage_bytes(launch: KernelLaunch) -> dict[int, int]:
    """Number of a storage → bytes up to the end of the last tensor in it."""
    ends: dict[int, int] = {}
    for tensor in launch.tensors.values():
        if tensor.storage is not None:
            number, offset = tensor.storage
            ends[number] = max(ends.get(number, 0), offset + tensor.bytes)
    return ends


def separate_tensors(launch: KernelLaunch) -> list[tuple[str, Tensor]]:
    """The tensors with bytes in the order of their addresses; those that share memory are one.

    Args:
        launch: with an address for every tensor.
    """
    groups: list[list[tuple[str, Tensor]]] = []
    end = 0
    in_memory = [(name, _without_negative_strides(tensor)) for name, tensor in launch.tensors.items()]
    for name, tensor in sorted(in_memory, key=lambda row: row[1].pointer or 0):
        start = tensor.pointer or 0
        if tensor.bytes:
            if groups and start < end:
                groups[-1].append((name, tensor))
            else:
                groups.append([(name, tensor)])
            end = max(end, start + tensor.bytes)
    return [_merge_tensors(group) for group in groups]


def _without_negative_strides(tensor: Tensor) -> Tensor:
    """A tensor of the same memory that begins at its pointer."""
    if not tensor.bytes_before:
        return tensor
    elements = tensor.bytes * 8 // tensor.bits
    return Tensor((elements,), tensor.dtype, pointer=(tensor.pointer or 0) - tensor.bytes_before)


def _merge_tensors(group: Sequence[tuple[str, Tensor]]) -> tuple[str, Tensor]:
    """Name and tensor of the memory that some tensors share, which is that of one that contains the others."""
    (name, first), *others = group
    if not others:
        return name, first
    names = f"{', '.join(name for name, _ in group[:-1])} and {group[-1][0]}"
    start = first.pointer or 0
    size = max((tensor.pointer or 0) + tensor.bytes for _, tensor in group) - start
    container = next((tensor for _, tensor in group if tensor.pointer == start and tensor.bytes == size), None)
    if container is not None and all(tensor.bits == container.bits for _, tensor in group):
        return names, container
    return names, Tensor((size,), "u8", pointer=start)


# ── Grid expressions ─────────────────────────────────────────────────────────────────────────────

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b,
}  # fmt: skip
_MOST_NAMES_LISTED = 50
"""Most names that an error lists."""
_MOST_CHARACTERS = 1_000
"""Longest expression in characters: Python's parser takes 240 bytes for each."""
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "cdiv": lambda a, b: -(-a // b), "min": min, "max": max,
    "next_power_of_2": lambda a: 1 << max(a - 1, 0).bit_length(),
}  # fmt: skip


def evaluate_extent(text: str, names: Mapping[str, Any]) -> int:
    """The value of an expression over arguments and constants.

    Raises:
        UsageError: it is too long, or has anything but numbers, names, `+ - * // %` and known functions.

    Example:
        >>> evaluate_extent("cdiv(M, BLOCK_M) * 2", {"M": 100, "BLOCK_M": 64})
        4
    """
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(
            f"Grid expression {text[:40]!r}… is longer than {_MOST_CHARACTERS:,} characters.", "Shorten it."
        )
    try:
        extent = _evaluate(ast.parse(text.strip(), mode="eval").body, names, text)
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"Cannot evaluate grid expression {text!r}.",
            "Use numbers and names with + - * // %, cdiv(a, b), min, max and next_power_of_2.",
        ) from error
    return extent


def _evaluate(node: ast.expr, names: Mapping[str, Any], text: str) -> int:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            name_value = names.get(name)
            if isinstance(name_value, int):
                return int(name_value)
            numbers = sorted(name for name, call_arguments in names.items() if isinstance(call_arguments, int))
            known_names = ", ".join(
                [*numbers[:_MOST_NAMES_LISTED], *(["…"] if len(numbers) > _MOST_NAMES_LISTED else [])]
            )
            raise UsageError(
                f"Grid expression {text!r} uses {name}, which is not a known number.",
                f"Known: {known_names}." if known_names else f"Give it: --arg {name}=VALUE.",
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, names, text)
        case ast.BinOp(left=left_operand, op=operator, right=right_operand) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](
                _evaluate(left_operand, names, text), _evaluate(right_operand, names, text)
            )
        case ast.Call(func=called, args=call_arguments, keywords=[]):
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name in _FUNCTIONS and call_arguments:
                return int(_FUNCTIONS[name](*(_evaluate(argument, names, text) for argument in call_arguments)))
    raise ValueError(text)

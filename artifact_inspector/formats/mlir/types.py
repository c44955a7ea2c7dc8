"""Tensor and memory types of Triton's dialects, with their layouts.

Source: the printed forms of RankedTensorType (MLIR Language Reference, Builtin Dialect) and of MemDescType
(`!tt.memdesc` in Triton 3.0 and 3.1, `!triton_gpu.memdesc` in 3.2, `!ttg.memdesc` since).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from operator import mul

from artifact_inspector.formats.mlir.encodings import parse_encoding
from artifact_inspector.model import TensorType
from artifact_inspector.model.limits import LAYOUT
from artifact_inspector.model.text import parse_integer, split_brackets, split_closed_list

# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_ALIAS = re.compile(r"\n(#\w+) = (#(?:triton_gpu|triton_nvidia_gpu|ttg|ttng|amdgpu|amdg)\..*\S)\s*$", re.M)
# The type inside a descriptor (`!tt.tensordesc<tensor<64x32xf16>>`, `: <f16>, <64x32xf16>`) is not a value's type.
_START = re.compile(
    r"(!(?:tt|ttg|triton_gpu)\.memdesc|(?<!desc<)(?<! <)tensor)<((?:\d+x)+)|(?<=-> )<((?:\d+x)+)(?=[fi!b])"
)
_ALIAS_USE = re.compile(r"#\w+(?![\w.])")
_BITS = re.compile(r"(?:[su]?i|[bt]?f)(\d{1,4})(?!\d)|(index|!tt\.ptr)")
_POINTER = re.compile(r"!tt\.ptr<([^,]+)(?:, \d+)?>")
_DIVISOR = re.compile(r"\btt\.divisibility = (\d+)")
_FLOAT = re.compile(r"\bf(?=\d+\b)")
# Triton, python/src/ir.cc: get_fp8e4nv_ty and similar functions.
_MAX_ELEMENTS = 1 << 62
_FLOAT8 = {"f8E4M3FN": "fp8e4nv", "f8E4M3FNUZ": "fp8e4b8", "f8E5M2": "fp8e5", "f8E5M2FNUZ": "fp8e5b16"}


def parse_layouts(text: str) -> dict[str, str]:
    """The layout aliases at the head of a module, nested ones resolved: `#blocked` → its attribute."""
    layouts = dict(_ALIAS.findall(f"\n{text}"))
    remaining_characters = LAYOUT.value
    # An alias may only use earlier ones.
    for name, layout in layouts.items():
        aliases = _ALIAS_USE.findall(layout)
        remaining_characters -= sum(len(layouts.get(alias, "")) for alias in aliases)
        if remaining_characters < 0:
            break  # the remaining aliases stay as written
        layouts[name] = _ALIAS_USE.sub(lambda alias: layouts.get(alias[0], alias[0]), layout) if aliases else layout
    return layouts


def parse_types(text: str, layouts: Mapping[str, str]) -> tuple[TensorType, ...]:
    """Every tensor and memory type in a text, in order.

    Operations on memory may omit the dialect (`-> <128x32xf16, #shared, #smem, mutable>`). Until Triton 2.3, memory is
    a tensor with a shared layout.

    Example:
        >>> found = parse_types("tensor<64x32x!tt.ptr<f16>, #b>", {"#b": "#ttg.linear<>"})[0]
        >>> found.shape, found.element, found.bits, found.encoding.name
        ((64, 32), '!tt.ptr<f16>', 16, 'linear')
    """
    types: list[TensorType] = []
    for tensor_type in _unresolved_types(text):
        shape, element, bits, layout, is_memory, _ = tensor_type
        if layout:
            layout = layouts.get(layout) or _ALIAS_USE.sub(lambda alias: layouts.get(alias[0], alias[0]), layout)
            is_memory = is_memory or layout.startswith("#triton_gpu.shared<")
            tensor_type = TensorType(shape, element, bits, layout, is_memory, parse_encoding(layout))
        types.append(tensor_type)
    return tuple(types)


@lru_cache(maxsize=4096)
def _unresolved_types(text: str) -> tuple[TensorType, ...]:
    """The types with their layouts as written; several analyses request those of one operation."""
    types: list[TensorType] = []
    starts = {match.end(1) if match[1] else match.start(): match for match in _START.finditer(text)}
    parameters_at = split_brackets(text, starts) if starts else {}
    for at, match in starts.items():
        parameters = parameters_at.get(at)
        if parameters is not None:
            # A tensor's only parameter is its encoding; the first parameter of a memdesc is the layout.
            layout = parameters[1] if len(parameters) > 1 else ""
            extents = match[2] or match[3]
            shape, element = _parse_shape(extents), parameters[0][len(extents) :].strip()
            if shape is None:
                continue
            types.append(TensorType(shape, element, element_bits(element), layout, match[1] != "tensor"))
    return tuple(types)


def read_signature(text: str) -> tuple[str, ...]:
    """The types of a function's arguments in Triton's own notation, with their divisibility.

    Memory spaces and vendor-specific attributes of pointers are omitted: a kernel has the same signature on all targets
    and versions.

    Args:
        text: of the function's line, after the opening bracket.

    Example:
        >>> read_signature("%a: !tt.ptr<f16, 1> {tt.divisibility = 16 : i32}, %n: i32 loc(#loc)) {")
        ('*fp16:16', 'i32')
    """
    signature = []
    for argument in split_closed_list(text, 0):
        kind, _, attributes = argument.partition(": ")[2].partition(" loc(")[0].partition(" {")
        divisor = _DIVISOR.search(attributes)
        hint = "" if divisor is None or divisor[1] == "1" else f":{divisor[1]}"
        pointer = _POINTER.fullmatch(kind)
        name = _triton_scalar(kind) if pointer is None else f"*{_triton_scalar(pointer[1])}"
        signature.append(name + hint)
    return tuple(signature)


def _triton_scalar(kind: str) -> str:
    """`fp16` for `f16`, `fp8e5` for `f8E5M2`; Triton's names for other types are MLIR's."""
    return _FLOAT8.get(kind) or _FLOAT.sub("fp", kind)


def _parse_shape(text: str) -> tuple[int, ...] | None:
    """The extents of `64x32x`; None for an impossible number of elements."""
    extents = [parse_integer(extent) for extent in text[:-1].split("x")]
    shape = tuple(extent for extent in extents if extent is not None)
    return None if len(shape) < len(extents) or max(accumulate(shape, mul)) > _MAX_ELEMENTS else shape


@lru_cache(maxsize=1024)
def element_bits(element: str) -> int:
    """Bits of an element type, or of the element that a pointer points at; 0 if unknown."""
    inner = element[element.find("<") + 1 :].rstrip(">") if "<" in element else element
    match = _BITS.match(inner.partition(",")[0].strip())
    if match is None:
        return 0
    return 64 if match[2] else int(match[1])

"""Tensor and memory types of Triton's dialects, with their layouts.

Source: the printed forms of RankedTensorType (MLIR Language Reference, Builtin Dialect) and of MemDescType
(`!tt.memdesc` in Triton 3.0 and 3.1, `!triton_gpu.memdesc` in 3.2, `!ttg.memdesc` since).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from artifact_inspector.formats.mlir.encodings import parse_encoding
from artifact_inspector.model import TensorType
from artifact_inspector.model.limits import LAYOUT
from artifact_inspector.model.text import integer, split_closed, split_each

# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_ALIAS = re.compile(r"\n(#\w+) = (#(?:triton_gpu|triton_nvidia_gpu|ttg|ttng|amdgpu|amdg)\..*\S)\s*$", re.M)
# The type inside a descriptor (`!tt.tensordesc<tensor<64x32xf16>>`, `: <f16>, <64x32xf16>`) is not a value's
# type.
_START = re.compile(
    r"(!(?:tt|ttg|triton_gpu)\.memdesc|(?<!desc<)(?<! <)tensor)<((?:\d+x)+)|(?<=-> )<((?:\d+x)+)(?=[fi!b])"
)
_USED = re.compile(r"#\w+(?![\w.])")
_BITS = re.compile(r"(?:[su]?i|[bt]?f)(\d{1,4})(?!\d)|(index|!tt\.ptr)")
_POINTER = re.compile(r"!tt\.ptr<([^,]+)(?:, \d+)?>")
_DIVISOR = re.compile(r"\btt\.divisibility = (\d+)")
_FLOAT = re.compile(r"\bf(?=\d+\b)")
# Triton, python/src/ir.cc: get_fp8e4nv_ty and similar functions.
_MOST_ELEMENTS = 1 << 62
_FLOAT8 = {
    "f8E4M3FN": "fp8e4nv",
    "f8E4M3FNUZ": "fp8e4b8",
    "f8E5M2": "fp8e5",
    "f8E5M2FNUZ": "fp8e5b16",
}


def parse_layouts(text: str) -> dict[str, str]:
    """The layout aliases at the head of a module, nested ones resolved: `#blocked` → its attribute."""
    found = dict(_ALIAS.findall(f"\n{text}"))
    left = LAYOUT.most
    # An alias may only use earlier ones.
    for name, layout in found.items():
        used = _USED.findall(layout)
        left -= sum(len(found.get(one, "")) for one in used)
        if left < 0:
            break  # the remaining aliases stay as written
        found[name] = _USED.sub(lambda one: found.get(one[0], one[0]), layout) if used else layout
    return found


def parse_types(text: str, layouts: Mapping[str, str]) -> tuple[TensorType, ...]:
    """Every tensor and memory type in a text, in order.

    Operations on memory may omit the dialect (`-> <128x32xf16, #shared, #smem, mutable>`). Until Triton 2.3,
    memory is a tensor with a shared layout.

    Example:
        >>> found = parse_types("tensor<64x32x!tt.ptr<f16>, #b>", {"#b": "#ttg.linear<>"})[0]
        >>> found.shape, found.element, found.bits, found.encoding.name
        ((64, 32), '!tt.ptr<f16>', 16, 'linear')
    """
    types: list[TensorType] = []
    for written in _written_types(text):
        shape, element, bits, layout, is_memory, _ = written
        if layout:
            layout = layouts.get(layout) or _USED.sub(lambda used: layouts.get(used[0], used[0]), layout)
            is_memory = is_memory or layout.startswith("#triton_gpu.shared<")
            written = TensorType(shape, element, bits, layout, is_memory, parse_encoding(layout))
        types.append(written)
    return tuple(types)


@lru_cache(maxsize=4096)
def _written_types(text: str) -> tuple[TensorType, ...]:
    """The types with their layouts as written; several analyses request those of one operation."""
    types: list[TensorType] = []
    starts = {found.end(1) if found[1] else found.start(): found for found in _START.finditer(text)}
    closed = split_each(text, starts) if starts else {}
    for at, found in starts.items():
        parts = closed.get(at)
        if parts is not None:
            # A tensor's only parameter is its encoding; the first parameter of a memdesc is the layout.
            layout = parts[1] if len(parts) > 1 else ""
            extents = found[2] or found[3]
            shape, element = _shape(extents), parts[0][len(extents) :].strip()
            if shape is None:
                continue
            types.append(TensorType(shape, element, element_bits(element), layout, found[1] != "tensor"))
    return tuple(types)


def read_signature(text: str) -> tuple[str, ...]:
    """The types of a function's arguments in Triton's own notation, with their divisibility.

    Memory spaces and vendor-specific attributes of pointers are omitted: a kernel has the same signature on
    all targets and versions.

    Args:
        text: of the function's line, after the opening bracket.

    Example:
        >>> read_signature("%a: !tt.ptr<f16, 1> {tt.divisibility = 16 : i32}, %n: i32 loc(#loc)) {")
        ('*fp16:16', 'i32')
    """
    signature = []
    for argument in split_closed(text, 0):
        written = argument.partition(": ")[2].partition(" loc(")[0]
        kind, _, attributes = written.partition(" {")
        divisor = _DIVISOR.search(attributes)
        hint = "" if divisor is None or divisor[1] == "1" else f":{divisor[1]}"
        pointer = _POINTER.fullmatch(kind)
        name = _scalar(kind) if pointer is None else f"*{_scalar(pointer[1])}"
        signature.append(name + hint)
    return tuple(signature)


def _scalar(kind: str) -> str:
    """`fp16` for `f16`, `fp8e5` for `f8E5M2`; Triton's names for other types are MLIR's."""
    return _FLOAT8.get(kind) or _FLOAT.sub("fp", kind)


def _shape(text: str) -> tuple[int, ...] | None:
    """The extents of `64x32x`; None for an impossible number of elements."""
    shape = []
    elements = 1
    for written in text[:-1].split("x"):
        extent = integer(written)
        elements *= extent or 0
        if extent is None or elements > _MOST_ELEMENTS:
            return None
        shape.append(extent)
    return tuple(shape)


@lru_cache(maxsize=1024)
def element_bits(element: str) -> int:
    """Bits of an element type, or of the element that a pointer points at; 0 if unknown."""
    inner = element[element.find("<") + 1 :].rstrip(">") if "<" in element else element
    found = _BITS.match(inner.partition(",")[0].strip())
    if found is None:
        return 0
    return 64 if found[2] else int(found[1])

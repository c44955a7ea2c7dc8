"""Parses layout attributes of Triton's dialects, once per text.

Source: the printed forms in TritonGPUAttrDefs.td and TritonNvidiaGPUAttrDefs.td of Triton 2.1 to 3.9.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.model.encoding import Encoding, Extents, LayoutKind, Vectors

_KIND = re.compile(r"#[a-z_]+\.(\w+)<")
_PARENT = re.compile(r"parent = (?=#[^{]*\{)")
_LIST = re.compile(r"\b(\w+) = \[([\d, ]*)\]")
_NUMBER = re.compile(r"\b(\w+) = (\d+|true|false)")
_LINEAR = re.compile(r"(register|lane|warp) = \[((?:\[[\d, ]*\](?:, )?)*)\]")
_VECTOR = re.compile(r"\[([\d, ]*)\]")
_PADDED = re.compile(r"padded_shared<\[([^\]]*)\]")
_PADDING_STEP = re.compile(r"(?<!\d)(\d+):\+(\d+)")
_DAMAGED = re.compile(r"\d{10}|\d +\d")
"""No extent has so many digits, and lists have commas."""
_MAX_NESTING = 16
"""Maximum nesting of layouts; a tensor does not have more axes to slice."""

_KINDS = {
    "blocked": LayoutKind.BLOCKED, "linear": LayoutKind.LINEAR, "slice": LayoutKind.SLICE,
    "dot_op": LayoutKind.DOT_OPERAND, "mma": LayoutKind.MMA, "nvidia_mma": LayoutKind.MMA, "amd_mfma": LayoutKind.MFMA,
    "amd_wmma": LayoutKind.WMMA, "tensor_memory_encoding": LayoutKind.TENSOR_MEMORY, "shared": LayoutKind.SHARED,
    "swizzled_shared": LayoutKind.SHARED, "nvmma_shared": LayoutKind.SHARED, "padded_shared": LayoutKind.PADDED_SHARED,
    "amd_rotating_shared": LayoutKind.SHARED,
}  # fmt: skip
_NAMED_BY_TRITON = frozenset({LayoutKind.OTHER, LayoutKind.TENSOR_MEMORY})
"""Kinds displayed with Triton's own name."""


@lru_cache(maxsize=1024)
def parse_encoding(text: str) -> Encoding | None:
    """Parse a layout attribute without aliases; None for an empty or damaged text.

    Example:
        >>> found = parse_encoding("#ttg.slice<{dim = 1, parent = #ttg.linear<{register = [[0, 1]]}>}>")
        >>> found.dim, found.parent.register
        (1, ((0, 1),))
    """
    if _DAMAGED.search(text) is not None:
        return None
    layers: list[tuple[str, str]] = []  # (name, own text), from the outside in
    while True:
        kind_match = _KIND.match(text)
        if kind_match is None or len(layers) == _MAX_NESTING:
            break
        parent_match = _PARENT.search(text) if kind_match[1] in ("slice", "dot_op") else None
        if parent_match is None:
            layers.append((kind_match[1], text))
            break
        stop = text.rfind("}>", 0, text.rfind("}>")) + 2
        layers.append((kind_match[1], text[: parent_match.start()] + text[stop:]))
        text = text[parent_match.end() : stop]
    encoding: Encoding | None = None
    for name, layer_text in reversed(layers):
        encoding = _encoding(name, layer_text, encoding)
    return encoding


def _encoding(name: str, text: str, parent: Encoding | None) -> Encoding:
    kind = _KINDS.get(name, LayoutKind.OTHER)
    lists = {key: _integers(values) for key, values in _LIST.findall(text)}
    numbers = dict(_NUMBER.findall(text))
    bases: dict[str, Vectors] = {
        level: tuple(_integers(vector) for vector in _VECTOR.findall(vectors))
        for level, vectors in _LINEAR.findall(text)
    }

    def number(*keys: str) -> int | None:
        return next((int(numbers[key]) for key in keys if numbers.get(key, "").isdigit()), None)

    padded = _PADDED.search(text)
    return Encoding(
        name, kind, name.replace("_", " ") if kind in _NAMED_BY_TRITON else kind.value,
        size_per_thread=lists.get("sizePerThread"), threads_per_warp=lists.get("threadsPerWarp"),
        warps=lists.get("warpsPerCTA"), order=lists.get("order"), instruction=lists.get("instrShape"),
        tiles_per_warp=lists.get("tilesPerWarp"), register=bases.get("register"), lane=bases.get("lane"),
        warp=bases.get("warp"), version=number("versionMajor", "version"),
        is_transposed=numbers.get("isTranspose", numbers.get("isTransposed")) == "true", operand=number("opIdx"),
        width=number("kWidth"), dim=number("dim"), parent=parent, swizzle=number("swizzlingByteWidth"),
        has_leading_offset=numbers.get("hasLeadingOffset") == "true",
        is_fp4_padded=numbers.get("fp4Padded") == "true",
        padding=() if padded is None else tuple((int(a), int(b)) for a, b in _PADDING_STEP.findall(padded[1])),
    )  # fmt: skip


def _integers(text: str) -> Extents:
    return tuple(int(number) for number in text.split(",") if number.strip())

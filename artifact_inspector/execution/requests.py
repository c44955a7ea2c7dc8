"""Launches as users write them: `--arg a_ptr=fp16[2048,2048]`, a grid expression, a JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import BITS, Launch, Tensor, evaluate_extent
from artifact_inspector.model.limits import LAUNCHES
from artifact_inspector.model.text import integer

_TENSOR = re.compile(r"(?P<type>[A-Za-z_]\w*)\[(?P<shape>[\d,\s]*)\](?:\((?P<stride>[\d,\s-]*)\))?$")
_SPACE = 1 << 48
"""Bytes of the address space (CUDA C Programming Guide; AMDGPU: 48-bit virtual addresses)."""
_FORM = (
    "Write a tensor as NAME=fp16[2048,2048], with strides as NAME=fp16[2048,2048](2048,1), "
    "a number as NAME=2048."
)
_WORDS: Mapping[str, Any] = {"None": None, "null": None, "True": True, "true": True, "False": False,
                             "false": False}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """A launch as written; its grid may have expressions over the constants of the compiled kernel."""

    grid: tuple[str | int, ...]
    arguments: Mapping[str, Any]
    hash: str | None = None
    """Part of the hash of the compiled variant that is launched; None means any."""
    notes: tuple[str, ...] = field(default=())

    def passed(self, constants: Container[str]) -> dict[str, Any]:
        """The arguments without compiler options and without constants of the kernel."""
        return {
            name: value
            for name, value in self.arguments.items()
            if name not in constants and name not in OPTIONS
        }


def parse_argument(text: str) -> tuple[str, Any]:
    """The name and value of `NAME=VALUE`.

    Raises:
        UsageError: it has another form.

    Example:
        >>> parse_argument("a=fp16[4,8]")[1].strides, parse_argument("M=64")
        ((8, 1), ('M', 64))
    """
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name or not value:
        raise UsageError(f"Invalid argument {text!r}.", _FORM)
    if value in _WORDS:
        return name, _WORDS[value]
    found = _TENSOR.match(value.removeprefix("torch."))
    if found is not None:
        shape = _numbers(found["shape"])
        stride = () if found["stride"] is None else _numbers(found["stride"])
        return name, _tensor(name, shape, found["type"], stride)
    try:
        return name, int(value, 0)
    except ValueError:
        pass
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(f"Invalid argument {text!r}.", _FORM) from None


def _numbers(text: str) -> tuple[int, ...]:
    found = [integer(part.strip()) for part in text.split(",") if part.strip()]
    return tuple(_known(number, text) for number in found)


def _known(number: int | None, text: str) -> int:
    if number is None:
        raise UsageError(f"Invalid or too large number in {text[:40]!r}.", _FORM)
    return number


def _tensor(
    name: str,
    shape: Sequence[int],
    dtype: str,
    stride: Sequence[int] = (),
    pointer: int | None = None,
    values: Any = None,
) -> Tensor:
    kind = dtype.removeprefix("torch.").removeprefix("*").removeprefix("tl.")
    if kind not in BITS:
        raise UsageError(f"Unknown type {dtype!r} for {name}.", f"Expected one of {', '.join(BITS)}.")
    if stride and len(stride) != len(shape):
        raise UsageError(f"{name} has {len(shape)} dimensions but {len(stride)} strides.", _FORM)
    if any(extent < 0 for extent in shape):
        raise UsageError(f"{name} has a negative dimension.", _FORM)
    given = None if values is None else tuple(_flat(values))
    if given is not None and not all(isinstance(one, float) or _is_word(one) for one in given):
        raise UsageError(f"{name} has values that are not numbers of at most 64 bits.", _FORM)
    found = Tensor(tuple(shape), kind, tuple(stride), pointer, given)
    if not 0 <= (pointer or 0) <= _SPACE - min(found.bytes, _SPACE + 1):
        raise UsageError(f"{name} is outside of the {_SPACE:.2g} bytes that a GPU can address.", _FORM)
    if given is not None:
        elements = found.bytes * 8 // found.bits
        if len(given) != elements:
            raise UsageError(
                f"{name} has {len(given)} values, but its shape and strides span {elements} elements.",
                "Give every element, in memory order.",
            )
    return found


def _is_word(value: Any) -> bool:
    return isinstance(value, int) and -(1 << 63) <= value < 1 << 64


def _flat(values: Any) -> Iterable[Any]:
    if isinstance(values, (list, tuple)):
        if not any(isinstance(value, (list, tuple)) for value in values):  # fast path: there may be a million
            yield from values
            return
        for value in values:
            yield from _flat(value)
    else:
        yield values


def parse_grid(text: str) -> tuple[str | int, ...]:
    """The extents of `1024`, `32,16` or `cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N),2`."""
    parts, depth, start = [], 0, 0
    text = text.strip()
    if text[:1] in "([" and text[-1:] in ")]" and _closes_last(text):
        text = text[1:-1].rstrip(", ")
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in ",x" and (letter == "," or text[at - 1 : at].isdigit()):
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return tuple(part.strip() if (number := integer(part.strip())) is None else number for part in parts)


def _closes_last(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return at == len(text) - 1
    return False


def parse_document(text: str, name: str) -> tuple[Request, ...]:
    """The launches in a JSON document: one, or several under `launches`.

    Args:
        text: the document.
        name: its name, for errors.

    Raises:
        UsageError: it is not JSON, or not of that form.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} is not valid JSON: {error}.", _DOCUMENT) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.", _DOCUMENT) from None
    return parse_document_of(document, name)


def parse_document_of(document: Any, name: str) -> tuple[Request, ...]:
    """The launches of a parsed document; see `parse_document`."""
    if isinstance(document, dict) and isinstance(document.get("launches"), list):
        document = document["launches"]
    rows = document if isinstance(document, list) else [document]
    if not rows:
        raise UsageError(f"{name} has no launches.", _DOCUMENT)
    if len(rows) > LAUNCHES.most:
        raise UsageError(
            f"{name} has {len(rows):,} launches; at most {LAUNCHES.most:,} are simulated.",
            f"Select some of them, or set {LAUNCHES.switch}.",
        )
    try:
        return tuple(_request(row, name) for row in rows)
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.", _DOCUMENT) from None


_DOCUMENT = (
    'Write {"grid": [x, y, z], "args": {NAME: number or {"shape", "dtype"}}}, or several under "launches".'
)


def _request(row: Any, name: str) -> Request:
    if not isinstance(row, dict) or not isinstance(row.get("args", {}), dict):
        raise UsageError(f"{name} has an entry that is not a launch.", _DOCUMENT)
    arguments = {str(key): _argument(str(key), value) for key, value in row.get("args", {}).items()}
    grid = row.get("grid")
    if isinstance(grid, (int, str)):
        extents = parse_grid(str(grid))
    elif isinstance(grid, list) and grid and all(isinstance(part, (int, str)) for part in grid):
        extents = tuple(grid)
    else:
        raise UsageError(f"{name} has a launch without a grid.", _DOCUMENT)
    wanted = row.get("hash")
    return Request(extents, arguments, str(wanted) if wanted else None)


def _argument(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("descriptor"), dict):
            return _argument(name, value["descriptor"])
        shape, dtype = value.get("shape"), value.get("dtype")
        if not isinstance(shape, list) or not isinstance(dtype, str):
            raise UsageError(f"{name} is an object without `shape` and `dtype`.", _DOCUMENT)
        stride = value.get("stride", value.get("strides")) or ()
        pointer = value.get("ptr", value.get("pointer"))
        try:
            return _tensor(
                name,
                [int(e) for e in shape],
                dtype,
                [int(s) for s in stride],
                None if pointer is None else int(pointer),
                value.get("values"),
            )
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{name} has dimensions or strides that are not numbers.", _DOCUMENT) from None
    if isinstance(value, str):
        return parse_argument(f"{name}={value}")[1] if _TENSOR.match(value.removeprefix("torch.")) else None
    return None if isinstance(value, list) else value


def resolve(request: Request, parameters: Iterable[str], constants: Mapping[str, Any] = {}) -> Launch:
    """The launch of one compiled kernel: the grid as numbers, with notes on arguments that it does not take.

    Args:
        request: the launch as written.
        parameters: names of the parameters of the compiled kernel.
        constants: what it was compiled with, if known.
    """
    names = {**request.arguments, **constants}
    extents = [evaluate_extent(part, names) if isinstance(part, str) else int(part) for part in request.grid]
    if not all(abs(extent) < 1 << 63 for extent in extents):
        raise UsageError("A dimension of the grid is too large.")
    if len(extents) > 3:
        raise UsageError(f"The grid has {len(extents)} dimensions.", "Expected at most three.")
    taken = {name.partition(".")[0] for name in parameters}
    spare = [
        name
        for name, value in request.passed(constants).items()
        if name not in taken and not _is_specialised(value)
    ]
    notes = request.notes
    if spare:
        notes += (
            f"not a parameter of the compiled kernel (constant, specialized or misspelled): "
            f"{', '.join(spare)}",
        )
    extents += [1] * (3 - len(extents))
    return Launch((extents[0], extents[1], extents[2]), request.arguments, request.hash, notes)


def _is_specialised(value: object) -> bool:
    """Whether Triton specializes on the value, so that the kernel takes no argument for it."""
    return value is None or (isinstance(value, int) and value == 1)


OPTIONS: Mapping[str, None] = dict.fromkeys(
    ("num_warps", "num_stages", "num_ctas", "maxnreg", "warp_size", "grid", "warmup")
)

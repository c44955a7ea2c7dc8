"""Launches as users write them: `--arg a_ptr=fp16[2048,2048]`, a grid expression, a JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import ELEMENT_BITS, KernelLaunch, Tensor, evaluate_extent
from artifact_inspector.execution.stored_values import StoredValues, TensorContents, ValuesReader
from artifact_inspector.model.limits import LAUNCHES
from artifact_inspector.model.text import parse_integer

_TENSOR = re.compile(r"(?P<type>[A-Za-z_]\w*)\[(?P<shape>[\d,\s]*)\](?:\((?P<stride>[\d,\s-]*)\))?$")
_ADDRESS_SPACE = 1 << 48
"""Bytes of the address space (CUDA C Programming Guide; AMDGPU: 48-bit virtual addresses)."""
_ARGUMENT_FORM = (
    "Write a tensor as NAME=fp16[2048,2048], with strides as NAME=fp16[2048,2048](2048,1), a number as NAME=2048."
)
_WORDS: Mapping[str, Any] = {"None": None, "null": None, "True": True, "true": True, "False": False,
                             "false": False}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A launch as written; its grid may have expressions over the constants of the compiled kernel."""

    grid: tuple[str | int, ...]
    arguments: Mapping[str, Any]
    kernel_hash: str | None = None
    """Part of the hash of the compiled variant that is launched; None means any."""
    notes: tuple[str, ...] = field(default=())
    inherited_names: frozenset[str] = frozenset()
    """Arguments of a recorded launch of another variant. Some may be that variant's constants."""
    interpreted_ctas: int = 0
    """CTAs that Triton's interpreter ran, for the contents of the tensors."""
    interpreter_problem: str | None = None

    def fit_variant(self, parameters: Container[str]) -> LaunchRequest:
        """The request without inherited arguments that are not parameters of the compiled kernel."""
        arguments = {
            name: value
            for name, value in self.arguments.items()
            if name not in self.inherited_names or name in parameters
        }
        return replace(self, arguments=arguments)

    def kernel_arguments(self, constants: Container[str]) -> dict[str, Any]:
        """The arguments without compiler options and without constants of the kernel."""
        return {
            name: value
            for name, value in self.arguments.items()
            if name not in constants and name not in COMPILER_OPTIONS
        }


def parse_argument(text: str) -> tuple[str, Any]:
    """The name and value of `NAME=VALUE`.

    Raises:
        UsageError: it has another form.

    Example:
        >>> parse_argument("a=fp16[4,8]")[1].strides, parse_argument("M=64")
        ((8, 1), ('M', 64))
    """
    name, separator, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not separator or not name or not value:
        raise UsageError(f"Invalid argument {text!r}.", _ARGUMENT_FORM)
    if value in _WORDS:
        return name, _WORDS[value]
    match = _TENSOR.match(value.removeprefix("torch."))
    if match is not None:
        shape = _numbers(match["shape"])
        stride = () if match["stride"] is None else _numbers(match["stride"])
        return name, _tensor(name, shape, match["type"], stride)
    try:
        return name, int(value, 0)
    except ValueError:
        pass
    try:
        return name, float(value)
    except ValueError:
        raise UsageError(f"Invalid argument {text!r}.", _ARGUMENT_FORM) from None


def _numbers(text: str) -> tuple[int, ...]:
    numbers = [parse_integer(number_text.strip()) for number_text in text.split(",") if number_text.strip()]
    return tuple(_require_number(number, text) for number in numbers)


def _require_number(number: int | None, text: str) -> int:
    if number is None:
        raise UsageError(f"Invalid or too large number in {text[:40]!r}.", _ARGUMENT_FORM)
    return number


def _tensor(
    name: str,
    shape: Sequence[int],
    dtype: str,
    stride: Sequence[int] = (),
    pointer: int | None = None,
    values: Any = None,
) -> Tensor:
    element_type = dtype.removeprefix("torch.").removeprefix("*").removeprefix("tl.")
    if element_type not in ELEMENT_BITS:
        near_names = get_close_matches(element_type, ELEMENT_BITS, 3)
        remedy = f"Did you mean {' or '.join(near_names)}?" if near_names else f"Choose from {', '.join(ELEMENT_BITS)}."
        raise UsageError(f"Unknown type {dtype!r} for {name}.", remedy)
    if stride and len(stride) != len(shape):
        raise UsageError(f"{name} has {len(shape)} dimensions but {len(stride)} strides.", _ARGUMENT_FORM)
    if any(extent < 0 for extent in shape):
        raise UsageError(f"{name} has a negative dimension.", _ARGUMENT_FORM)
    flat_values = values if values is None or isinstance(values, StoredValues) else tuple(_flat(values))
    if isinstance(flat_values, tuple) and not all(
        isinstance(element, float) or (isinstance(element, int) and -(1 << 63) <= element < 1 << 64)
        for element in flat_values
    ):
        raise UsageError(f"{name} has values that are not numbers of at most 64 bits.", _ARGUMENT_FORM)
    tensor = Tensor(tuple(shape), element_type, tuple(stride), pointer, flat_values)
    if not 0 <= (pointer or 0) <= _ADDRESS_SPACE - min(tensor.bytes, _ADDRESS_SPACE + 1):
        raise UsageError(f"{name} is outside of the {_ADDRESS_SPACE:.2g} bytes that a GPU can address.", _ARGUMENT_FORM)
    if flat_values is not None:
        elements = tensor.bytes * 8 // tensor.bits
        if len(flat_values) != elements:
            raise UsageError(
                f"{name} has {len(flat_values)} values, but its shape and strides span {elements} elements.",
                "Give every element, in memory order.",
            )
    return tensor


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
    extents, depth, start = [], 0, 0
    text = text.strip()
    if text[:1] in "([" and text[-1:] in ")]" and _closes_last(text):
        text = text[1:-1].rstrip(", ")
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in ",x" and (letter == "," or text[at - 1 : at].isdigit()):
            extents.append(text[start:at])
            start = at + 1
    extents.append(text[start:])
    return tuple(extent.strip() if (number := parse_integer(extent.strip())) is None else number for extent in extents)


def _closes_last(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return at == len(text) - 1
    return False


def parse_document(text: str, name: str) -> tuple[LaunchRequest, ...]:
    """The launches in a JSON document: one, or several under `launches`.

    Args:
        name: its name, for errors.

    Raises:
        UsageError: it is not JSON, or not of that form.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} is not valid JSON: {error}.", _DOCUMENT_FORM) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.", _DOCUMENT_FORM) from None
    return parse_document_of(document, name)


def parse_document_of(document: Any, name: str) -> tuple[LaunchRequest, ...]:
    """The launches of a parsed document; see `parse_document`."""
    if isinstance(document, dict) and isinstance(document.get("launches"), list):
        document = document["launches"]
    rows = document if isinstance(document, list) else [document]
    if not rows:
        raise UsageError(f"{name} has no launches.", _DOCUMENT_FORM)
    if len(rows) > LAUNCHES.value:
        raise UsageError(
            f"{name} has {len(rows):,} launches; at most {LAUNCHES.value:,} are simulated.",
            f"Select some of them, or set {LAUNCHES.variable}.",
        )
    try:
        return tuple(_request(row, name) for row in rows)
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply.", _DOCUMENT_FORM) from None


def parse_recorded(rows: Iterable[Mapping[str, Any]], directory: Path) -> tuple[LaunchRequest, ...]:
    """The launches of a record, as `read_launches` returns them.

    Args:
        directory: of the record, which has the values of large tensors.

    Raises:
        UsageError: as for `parse_document`.
    """
    reader = ValuesReader(directory)
    resolved = [reader.resolve_row(row) for row in rows]
    requests = parse_document_of({"launches": [row for row, _ in resolved]}, "the record")
    return tuple(
        replace(request, notes=(*request.notes, *notes)) if notes else request
        for request, (_, notes) in zip(requests, resolved, strict=True)
    )


_DOCUMENT_FORM = 'Write {"grid": [x, y, z], "args": {NAME: number or {"shape", "dtype"}}}, or several under "launches".'


def _request(row: Any, name: str) -> LaunchRequest:
    if not isinstance(row, dict) or not isinstance(row.get("args", {}), dict):
        raise UsageError(f"{name} has an entry that is not a launch.", _DOCUMENT_FORM)
    arguments = {str(key): _argument(str(key), value) for key, value in row.get("args", {}).items()}
    if isinstance(initialized := row.get("initialized"), list):
        for key, argument in arguments.items():
            if isinstance(argument, Tensor):
                created = row["created"].get(key) if isinstance(row.get("created"), dict) else None
                created = created if type(created) is int else None
                is_filled = isinstance(row.get("filled"), list) and key in row["filled"]
                is_initialized = key in initialized
                arguments[key] = replace(argument, is_initialized=is_initialized, created=created, is_filled=is_filled)
    grid = row.get("grid")
    if isinstance(grid, (int, str)):
        extents = parse_grid(str(grid))
    elif isinstance(grid, list) and grid and all(isinstance(extent, (int, str)) for extent in grid):
        extents = tuple(grid)
    else:
        raise UsageError(f"{name} has a launch without a grid.", _DOCUMENT_FORM)
    hash_prefix = row.get("hash")
    request = LaunchRequest(extents, arguments, str(hash_prefix) if hash_prefix else None)
    interpreted = row.get("interpreted")
    if not isinstance(interpreted, dict) or type(interpreted.get("ctas")) is not int:
        return request
    problem = interpreted.get("problem")
    return replace(
        request, interpreted_ctas=max(0, interpreted["ctas"]),
        interpreter_problem=None if problem is None else str(problem),
    )  # fmt: skip


def _storage(name: str, value: Mapping[str, Any], tensor: Tensor) -> tuple[int, int] | None:
    if value.get("storage") is None:
        return None
    number, offset = int(value["storage"]), int(value.get("offset", 0))
    if number < 0 or not 0 <= offset <= _ADDRESS_SPACE - tensor.bytes:
        raise UsageError(f"{name} is outside of the storage that a GPU can address.", _DOCUMENT_FORM)
    return number, offset


def _argument(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        if isinstance(value.get("descriptor"), dict):
            return _argument(name, value["descriptor"])
        shape, dtype = value.get("shape"), value.get("dtype")
        if not isinstance(shape, list) or not isinstance(dtype, str):
            raise UsageError(f"{name} is an object without `shape` and `dtype`.", _DOCUMENT_FORM)
        stride = value.get("stride", value.get("strides")) or ()
        pointer = value.get("ptr", value.get("pointer"))
        try:
            tensor = _tensor(
                name,
                [int(e) for e in shape],
                dtype,
                [int(s) for s in stride],
                None if pointer is None else int(pointer),
                value.get("values"),
            )
            contents = value.get("contents")
            contents = contents if isinstance(contents, TensorContents) else None
            is_whole = contents is not None and len(contents.before) == len(contents.after) == tensor.bytes
            tensor = replace(tensor, contents=contents if is_whole else None)
            block_shape = tuple(int(extent) for extent in value.get("block_shape") or ())
            return replace(tensor, block_shape=block_shape, storage=_storage(name, value, tensor))
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{name} has dimensions or strides that are not numbers.", _DOCUMENT_FORM) from None
    if isinstance(value, str):
        return parse_argument(f"{name}={value}")[1] if _TENSOR.match(value.removeprefix("torch.")) else None
    return None if isinstance(value, list) else value


def resolve_launch(
    request: LaunchRequest, parameters: Iterable[str], constants: Mapping[str, Any] = {}
) -> KernelLaunch:
    """The launch of one compiled kernel: the grid as numbers, with notes on arguments that it does not take.

    Args:
        parameters: names of the parameters of the compiled kernel.
        constants: what it was compiled with, if known.
    """
    parameter_names = {name.partition(".")[0] for name in parameters}
    # the constants of this variant only: those of the variant that was launched give another grid
    names = {**request.fit_variant(parameter_names).arguments, **constants}
    try:
        extents = [
            evaluate_extent(extent, names) if isinstance(extent, str) else int(extent) for extent in request.grid
        ]
    except UsageError as error:
        if not request.inherited_names:
            raise
        raise UsageError(
            error.message,
            f"{error.remedy} The constants of this variant are not on record, and those of another one are not used. "
            "Write their values in the grid.",
        ) from None
    if not all(abs(extent) < 1 << 63 for extent in extents):
        raise UsageError("A dimension of the grid is too large.")
    if len(extents) > 3:
        raise UsageError(f"The grid has {len(extents)} dimensions.", "Expected at most three.")
    unused_arguments = [
        name
        for name, value in request.kernel_arguments(constants).items()
        if name not in parameter_names
        and not (value is None or (isinstance(value, int) and value == 1))  # which Triton compiles in
    ]
    notes = request.notes
    if unused_arguments:
        notes += (
            f"not a parameter of the compiled kernel (constant, specialized or misspelled): "
            f"{', '.join(unused_arguments)}",
        )
    extents += [1] * (3 - len(extents))
    return KernelLaunch(
        (extents[0], extents[1], extents[2]),
        request.arguments,
        request.kernel_hash,
        notes,
        request.interpreted_ctas,
        request.interpreter_problem,
    )


COMPILER_OPTIONS: Mapping[str, None] = dict.fromkeys(
    ("num_warps", "num_stages", "num_ctas", "maxnreg", "warp_size", "grid", "warmup")
)

"""Record the arguments of a launch, so that the launch can be simulated later.

A record is `{"grid": [x, y, z], "args": {NAME: …}}`. Numbers, booleans and None are written as they are. A tensor is an
object with `shape`, `stride` (in elements), `dtype` (torch's name) and `alignment`, the bytes that divide its address
(at most 512, the alignment of torch's allocator). One that shares its storage, or begins inside of it, has the
number of the `storage` and its `offset` in bytes. It has `ptr` where the address is one of a GPU, and `values` where it
is a small tensor of integers with known contents. A tensor descriptor is such an object with `block_shape`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

MAX_RECORDED_ELEMENTS = 65536
"""Largest number of elements of a tensor whose values are recorded."""
_MAX_ALIGNMENT = 512
_SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


def describe_arguments(
    function: Any, args: Sequence[Any], options: Mapping[str, Any], *, values: Callable[[Any], bool], addresses: bool
) -> dict[str, Any]:
    """Describe each argument of a launch by its parameter name, constants included.

    Args:
        options: keyword arguments of the launch; names that are no parameters are ignored.
        values: returns whether a tensor holds the values that it would hold on a GPU.
        addresses: whether the tensors lie in GPU memory, so that their addresses are recorded.
    """
    arguments = named_arguments(function, args, options)
    described = {name: _describe_value(value, values, addresses) for name, value in arguments.items()}
    return described if addresses else _with_storages(arguments, described)


def _with_storages(arguments: Mapping[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    """The descriptions with the storages of tensors that share one, or that do not begin one."""
    tensors = {name: getattr(value, "base", value) for name, value in arguments.items() if value is not None}
    storages = {
        x: tensor.untyped_storage()._cdata for x, tensor in tensors.items() if hasattr(tensor, "untyped_storage")
    }
    numbers = {identity: number for number, identity in enumerate(dict.fromkeys(storages.values()))}
    for name, identity in storages.items():
        offset = storage_offset(tensors[name])
        if isinstance(described[name], dict) and (offset or [*storages.values()].count(identity) > 1):
            described[name].update(storage=numbers[identity], offset=offset)
    return described


def tensors_in(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors among some arguments, those of tuples and lists and those that an argument wraps included."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from tensors_in(value)
        elif hasattr(tensor := find_wrapped_tensor(value), "untyped_storage"):
            yield tensor


def find_wrapped_tensor(value: Any) -> Any:
    """The tensor that an argument wraps: a descriptor or a view of a library. Otherwise the argument."""
    inner = None if hasattr(value, "is_inference") else getattr(value, "base", getattr(value, "_base", None))
    return value if inner is None or inner is value else find_wrapped_tensor(inner)


def storage_offset(tensor: Any) -> int:
    """Bytes from the start of a tensor's storage to its first element; views of libraries know only addresses."""
    if hasattr(tensor, "storage_offset"):
        return int(tensor.storage_offset()) * int(tensor.element_size())
    if hasattr(tensor, "untyped_storage"):
        return int(tensor.data_ptr()) - int(tensor.untyped_storage().data_ptr())
    return 0


def memory_layout(tensor: Any) -> tuple[list[int], list[int]]:
    """Shape and strides of the memory that a tensor gives access to.

    A view that repeats elements does not say where its memory ends, because kernels index it by strides of their own:
    it counts as the flat rest of its storage, if that is larger.
    """
    shape = [*map(int, getattr(tensor, "shape", ()))]
    stride = [*map(int, tensor.stride())] if hasattr(tensor, "stride") else []
    repeats = any(step == 0 and extent > 1 for extent, step in zip(shape, stride, strict=False))
    if not repeats or min(shape) == 0 or min(stride) < 0 or not hasattr(tensor, "untyped_storage"):
        return shape, stride
    remaining = (int(tensor.untyped_storage().nbytes()) - storage_offset(tensor)) // int(tensor.element_size())
    span = 1 + sum((extent - 1) * step for extent, step in zip(shape, stride, strict=True))
    return ([remaining], [1]) if remaining > span else (shape, stride)


def named_arguments(function: Any, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Parameter name → argument of a launch, defaults included."""
    names = list(function.arg_names)
    arguments = {**dict(zip(names, args, strict=False)), **{name: options[name] for name in names if name in options}}
    for parameter in getattr(function, "params", ()):
        if parameter.name not in arguments and getattr(parameter, "has_default", False):
            arguments[parameter.name] = parameter.default
    return arguments


def _describe_value(value: Any, values: Callable[[Any], bool], addresses: bool) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if hasattr(value, "base") and hasattr(value, "block_shape"):  # triton.tools.tensor_descriptor
        description = _describe_tensor(value.base, values, addresses)
        description.update(shape=[*map(int, value.shape)], stride=[*map(int, value.strides)])
        return {**description, "block_shape": [*map(int, value.block_shape)]}
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _describe_tensor(value, values, addresses)
    if isinstance(value, tuple | list):
        return [_describe_value(member, values, addresses) for member in value]
    value = getattr(value, "value", value)
    if isinstance(value, bool | int | float):
        return value
    return str(getattr(value, "__name__", None) or value)[:200]


def _describe_tensor(value: Any, values: Callable[[Any], bool], addresses: bool) -> dict[str, Any]:
    # Inductor and user code wrap tensors to change their type
    tensor = value if hasattr(value, "stride") else getattr(value, "base", value)
    offset = value.data_ptr() if addresses else storage_offset(tensor)
    shape, stride = memory_layout(tensor)
    description: dict[str, Any] = {
        "shape": shape,
        "stride": stride,
        "dtype": str(value.dtype).removeprefix("torch."),
        "alignment": min(_MAX_ALIGNMENT, offset & -offset) if offset else _MAX_ALIGNMENT,
    }
    if addresses:
        description["ptr"] = int(offset)
    if not getattr(tensor, "is_meta", True) and values(tensor) and (elements := read_elements(tensor)) is not None:
        description["values"] = elements
    return description


def read_elements(tensor: Any, most: int = MAX_RECORDED_ELEMENTS) -> list[int] | None:
    """The elements of an integer tensor with at most so many, in memory order; None for any other tensor.

    They are read from the storage: `tolist` is replaced in a captured program.
    """
    kind = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if not kind.startswith(("int", "uint", "bool")) or not hasattr(tensor, "untyped_storage"):
        return None
    if not 0 < int(tensor.numel()) <= most or not tensor.is_contiguous():
        return None
    size, start = int(tensor.element_size()), storage_offset(tensor)
    storage = tensor.untyped_storage()
    if storage.device.type != "cpu":  # the elements only: the storage may be much larger
        start, tensor = 0, tensor.cpu()
        storage = tensor.untyped_storage()
    content = ctypes.string_at(storage.data_ptr() + start, size * int(tensor.numel()))
    return array((_SIGNED if kind.startswith("int") else _UNSIGNED)[size], content).tolist()

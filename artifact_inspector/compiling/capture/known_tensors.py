"""Track which tensors have the values, at a launch, that they would have on a GPU.

No kernel runs, so the values that kernels would write are missing. Until the first call of a kernel is over,
every tensor has its real values. After that, a tensor is known if it was known when the program wrote it last, and no
kernel may have written values of its type to it since. A result of torch is known if all its operands are, until the
program reads a value that is not. A kernel that writes indices is run in Triton's interpreter if its inputs are known.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from artifact_inspector.compiling.arguments import MAX_RECORDED_ELEMENTS

_STORE_OPERATION = re.compile(r"tt\.(?:store|atomic_\w+)\b")
_ELEMENT_TYPE = re.compile(r"!tt\.ptr<b?([a-z]\d+)")
_UNKNOWN_WRITES = (
    *("int_to_ptr", "bitcast", "tensordesc", "tensor_desc", "tt.call", "ptr<tensor", "inline_asm", "extern_"),
)
"""Operations after which a kernel may write through pointers of another type, or to unknown addresses."""
_OVERWRITING = ("fill_", "copy_", "zero_", "random_")
"""Functions that replace every element of their first operand."""
_SHAPED_BY_VALUES = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive")
"""Functions whose result has a shape that depends on values."""


class KnownTensors:
    """The tensors of one program whose values are known.

    Args:
        uninitialized: the tensors that the program created without values.
    """

    def __init__(self, uninitialized: UninitializedTensors | None = None) -> None:
        self.uninitialized = UninitializedTensors() if uninitialized is None else uninitialized
        self._versions: dict[int, tuple[Any, int]] | None = None
        """Identity of a storage → a weak reference, so that the identity is not reused, and its version."""
        self._written: dict[int, Any] = {}
        """Identity of a storage that the first call may have written → a weak reference."""
        self._has_read_unknown = False

    def is_known(self, tensor: Any) -> bool:
        """Whether a tensor has the values that it would have on a GPU."""
        if self._versions is None:
            return True
        if not _is_followed(tensor):
            return False
        reference_and_version = self._versions.get(_identity(tensor))
        return reference_and_version is not None and reference_and_version[1] == tensor._version

    def mark_written(
        self,
        arguments: Iterable[Any],
        text: Callable[[], str | None],
        inputs: Iterable[Any] = (),
        interpret: Callable[[], bool] = lambda: False,
    ) -> None:
        """Mark the tensors that a kernel may write as unknown, or as known after they are interpreted.

        Args:
            text: the kernel's first stage; None if it is not available.
            inputs: the tensors that have values before the launch.
            interpret: runs the launch on the tensors; returns whether it ran to its end.
        """
        tensors = [*_followed_in(arguments)]
        kinds = _written_types(text()) if tensors else None
        written = [tensor for tensor in tensors if kinds is None or _type_of(tensor) in kinds]
        has_indices = kinds is not None and any(map(_is_small_index_tensor, written))
        is_known = has_indices and all(map(self.is_known, _followed_in(inputs))) and interpret()
        for tensor in written:
            (self._add if is_known else self._discard)(tensor)

    def remember_tensors(self) -> None:
        """Remember the existing tensors, on the first call."""
        if self._versions is None:
            self._versions = {}
            for tensor in filter(_is_followed, gc.get_objects()):
                if _identity(tensor) not in self._written:
                    self._add(tensor)

    def note_read(self, value: Any) -> None:
        """Note that the program reads values: if they are unknown, whatever follows may depend on them."""
        self._has_read_unknown |= not self.is_known(value)

    def follow(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Call a function of torch, and mark its results."""
        if self._versions is None:
            return function(*args, **options)
        name = getattr(function, "__name__", "")
        versions = [(tensor, tensor._version) for tensor in _followed_in((*args, *options.values()))]
        overwritten = _identity(args[0]) if name in _OVERWRITING and args and _is_whole(args[0]) else None
        is_known = all(self.is_known(tensor) for tensor, _ in versions if _identity(tensor) != overwritten)
        result = function(*args, **options)
        self._has_read_unknown |= not is_known and _is_shaped_by_values(name, args)
        is_known &= not self._has_read_unknown
        changed = [tensor for tensor, version in versions if tensor._version != version]
        for tensor in changed:
            (self._add if is_known else self._discard)(tensor)
        if is_known and not name.startswith(("empty", "new_empty")):
            for tensor in _followed_in((result,)):
                self._add(tensor)
        return result

    def forget(self, tensor: Any) -> None:
        """Note that a tensor was created without values."""
        self.uninitialized.add(tensor)
        if self._versions is not None and _is_followed(tensor):
            self._discard(tensor)

    def _add(self, tensor: Any) -> None:
        self._written.pop(_identity(tensor), None)
        if self._versions is not None:
            self._versions[_identity(tensor)] = (_reference_to(tensor.untyped_storage()), tensor._version)

    def _discard(self, tensor: Any) -> None:
        if self._versions is None:
            self._written[_identity(tensor)] = _reference_to(tensor.untyped_storage())
        else:
            self._versions.pop(_identity(tensor), None)


class UninitializedTensors:
    """The storages that were created without values, and that neither the program nor a kernel has written since."""

    def __init__(self) -> None:
        self._versions: dict[int, tuple[Any, int]] = {}
        """Identity of a storage → a weak reference, so that the identity is not reused, and its version."""
        self._numbers: dict[int, tuple[Any, int]] = {}
        """Identity of a storage, written or not → a weak reference, and its number."""

    def add(self, tensor: Any) -> None:
        """Add the storage of a tensor that was just created."""
        if tensor.is_inference():
            return  # has no version
        storage = tensor.untyped_storage()
        reference = _reference_to(storage)
        self._versions[storage._cdata] = (reference, tensor._version)
        self._numbers[storage._cdata] = (reference, len(self._numbers))

    def discard(self, tensor: Any) -> None:
        """Note that a tensor may be written in a way that leaves its version."""
        self._versions.pop(_identity(tensor), None)

    def find_initialized(self, arguments: Mapping[str, Any], *, writes: bool) -> list[str]:
        """Names of the tensors among some arguments of a launch that are initialized.

        Args:
            writes: whether the launch may initialize the others.
        """
        tensors, storages = _tensors_and_storages(arguments)
        unwritten = {
            identity
            for name, identity in storages.items()
            if identity in self._versions and self._versions[identity][1] == tensors[name]._version
        }
        for identity in unwritten if writes else ():
            del self._versions[identity]
        return [name for name, identity in storages.items() if identity not in unwritten]

    def number_storages(self, arguments: Mapping[str, Any]) -> dict[str, int]:
        """Names of the tensors among some arguments that were created without values → number of their storage."""
        _, storages = _tensors_and_storages(arguments)
        return {name: self._numbers[one][1] for name, one in storages.items() if one in self._numbers}


def _tensors_and_storages(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    tensors = {name: _find_wrapped_tensor(value) for name, value in arguments.items()}
    storages = {x: one.untyped_storage()._cdata for x, one in tensors.items() if hasattr(one, "untyped_storage")}
    return tensors, storages


def _reference_to(storage: Any) -> Any:
    from torch.multiprocessing import reductions  # programs without torch are captured, too

    return vars(reductions)["StorageWeakRef"](storage)


def _is_followed(value: Any) -> bool:
    """Whether a value is a tensor with data and a version."""
    torch = sys.modules.get("torch")
    kinds = () if torch is None else (torch.Tensor, torch.nn.Parameter)
    return type(value) in kinds and not value.is_meta and value.layout == torch.strided and not value.is_inference()


def _followed_in(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple | list):
            yield from _followed_in(value)
        elif _is_followed(tensor := _find_wrapped_tensor(value)):
            yield tensor


def _is_shaped_by_values(name: str, args: tuple[Any, ...]) -> bool:
    if name in ("__getitem__", "repeat_interleave"):  # a mask, or the number of repeats
        return any(name[0] == "r" or _type_of(tensor) == "i8" for tensor in _followed_in(args[1:]))
    return name in _SHAPED_BY_VALUES or (name == "where" and len(args) == 1)


def _is_small_index_tensor(tensor: Any) -> bool:
    return _type_of(tensor) in ("i32", "i64") and 0 < tensor.numel() <= MAX_RECORDED_ELEMENTS


def _is_whole(tensor: Any) -> bool:
    """Whether a tensor is all of its storage."""
    return _is_followed(tensor) and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def _identity(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _type_of(tensor: Any) -> str:
    """The type of a tensor's elements as `f` or `i` and their bits."""
    is_float = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    return f"{'f' if is_float else 'i'}{8 * tensor.element_size()}"


def _written_types(text: str | None) -> frozenset[str] | None:
    """Types of the elements that a kernel writes, by its text; None if it may write any.

    Example:
        >>> sorted(_written_types("tt.store %p, %v : tensor<64x!tt.ptr<bf16>>"))
        ['f16']
        >>> sorted(_written_types("tt.atomic_rmw add, %p, %v : (tensor<64x!tt.ptr<i32>>) -> tensor<64xi32>"))
        ['i32']
    """
    if text is None or any(operation in text for operation in _UNKNOWN_WRITES):
        return None
    stores = "\n".join(line for line in text.splitlines() if _STORE_OPERATION.search(line))
    kinds = frozenset(_ELEMENT_TYPE.findall(stores))
    return kinds | {"i8"} if "i1" in kinds else kinds


def _find_wrapped_tensor(value: Any) -> Any:
    """The tensor that an argument wraps: a descriptor or a view of a library. Otherwise the argument."""
    if hasattr(value, "is_inference"):
        return value
    return getattr(value, "base", getattr(value, "_base", value))

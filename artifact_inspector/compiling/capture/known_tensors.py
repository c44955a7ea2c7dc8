"""Track which small integer tensors have the values, at a launch, that they would have on a GPU.

No kernel runs, so the values that kernels would write are missing. Until the first call of a kernel is over,
every tensor has its real values. After that, a tensor is known if it existed before the call, the program has
not written to it since, and it was passed to no kernel that may write values of its type.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from artifact_inspector.compiling.arguments import MAX_RECORDED_ELEMENTS

_STORE_OPERATION = re.compile(r"tt\.(?:store|atomic_\w+)\b")
_INTEGER_TYPE = re.compile(r"!tt\.ptr<([a-z]\w*)")
_UNKNOWN_WRITES = (
    *("int_to_ptr", "bitcast", "tensordesc", "tensor_desc", "tt.call", "ptr<tensor", "inline_asm", "extern_"),
)
"""Operations after which a kernel may write through pointers of another type, or to unknown addresses."""


class KnownTensors:
    """The tensors of one program whose values are known."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[Any, int]] | None = None
        """Address of a storage → the storage, referenced so that its address is not reused, and its version."""
        self._written_addresses: set[int] = set()

    def is_known(self, tensor: Any) -> bool:
        """Whether a tensor has the values that it would have on a GPU."""
        if self._storages is None:
            return True
        storage_and_version = self._storages.get(_storage_address(tensor))
        return storage_and_version is not None and storage_and_version[1] == tensor._version

    def mark_written(self, arguments: Iterable[Any], text: Callable[[], str | None]) -> None:
        """Mark the tensors that a kernel may write as unknown.

        Args:
            text: the kernel's first stage; None if it is not available.
        """
        tensors = [value for value in arguments if _is_small_integer_tensor(value)]
        if not tensors:
            return
        kinds = _written_widths(text())
        for tensor in tensors:
            if kinds is None or 8 * tensor.element_size() in kinds:
                at = _storage_address(tensor)
                self._written_addresses.add(at)
                if self._storages is not None:
                    self._storages.pop(at, None)

    def remember_tensors(self) -> None:
        """Remember the existing tensors, on the first call."""
        if self._storages is None:
            tensors = [value for value in gc.get_objects() if _is_small_integer_tensor(value)]
            storages = {_storage_address(tensor): (tensor.untyped_storage(), tensor._version) for tensor in tensors}
            self._storages = {at: entry for at, entry in storages.items() if at not in self._written_addresses}


class UninitializedTensors:
    """The storages that were created without values, and that neither the program nor a kernel has written since."""

    def __init__(self) -> None:
        self._versions: dict[int, tuple[Any, int]] = {}
        """Identity of a storage → a weak reference, so that the identity is not reused, and its version."""
        self._numbers: dict[int, tuple[Any, int]] = {}
        """Identity of a storage, written or not → a weak reference, and its number."""

    def add(self, tensor: Any) -> None:
        """Add the storage of a tensor that was just created."""
        from torch.multiprocessing import reductions  # programs without torch are captured, too

        if tensor.is_inference():
            return  # has no version
        storage, reference_to = tensor.untyped_storage(), vars(reductions)["StorageWeakRef"]
        reference = reference_to(storage)
        self._versions[storage._cdata] = (reference, tensor._version)
        self._numbers[storage._cdata] = (reference, len(self._numbers))

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


def _is_small_integer_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(type(value), torch.Tensor) or value.is_meta or value.layout != torch.strided:
        return False
    integers = str(value.dtype).removeprefix("torch.").startswith(("int", "uint", "bool"))
    return integers and not value.is_inference() and 0 < value.numel() <= MAX_RECORDED_ELEMENTS


def _storage_address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _written_widths(text: str | None) -> frozenset[int] | None:
    """Bit widths of the integers that a kernel writes, by its text; None if it may write any.

    Example:
        >>> sorted(_written_widths("tt.store %p, %v : tensor<64x!tt.ptr<f16>>"))
        []
        >>> sorted(_written_widths("tt.atomic_rmw add, %p, %v : (tensor<64x!tt.ptr<i32>>) -> tensor<64xi32>"))
        [32]
    """
    if text is None or any(operation in text for operation in _UNKNOWN_WRITES):
        return None
    stores = "\n".join(line for line in text.splitlines() if _STORE_OPERATION.search(line))
    return frozenset(int(kind[1:]) for kind in _INTEGER_TYPE.findall(stores) if re.fullmatch(r"i\d+", kind))


def _find_wrapped_tensor(value: Any) -> Any:
    """The tensor that an argument wraps: a descriptor or a view of a library. Otherwise the argument."""
    if hasattr(value, "is_inference"):
        return value
    return getattr(value, "base", getattr(value, "_base", value))

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
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from artifact_inspector.compiling.arguments import MAX_RECORDED_ELEMENTS, find_wrapped_tensor, tensors_in

_STORE_OPERATION = re.compile(r"tt\.(?:store|atomic_\w+)\b")
_ELEMENT_TYPE = re.compile(r"!tt\.ptr<b?([a-z]\d+)")
_UNKNOWN_WRITES = (
    *("int_to_ptr", "bitcast", "tensordesc", "tensor_desc", "tt.call", "ptr<tensor", "inline_asm", "extern_"),
)
"""Operations after which a kernel may write through pointers of another type, or to unknown addresses."""
_FILLS_OF_PARTS = ("masked_fill_", "index_fill_", "index_copy_", "index_put_", "scatter_")
FILLS = ("__setitem__", "fill_", "zero_", "copy_", *_FILLS_OF_PARTS)
"""Methods that write values to a tensor, or to a part of it."""
_SHAPED_BY_VALUES = ("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive")
"""Functions whose result has a shape that depends on values."""


class _Versions:
    """Storages with the version that each had when it was added; weak references keep identities from being reused."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, int]] = {}

    def add(self, tensor: Any) -> None:
        self._rows[_identity(tensor)] = (_reference_to(tensor), tensor._version)

    def discard(self, tensor: Any) -> None:
        self._rows.pop(_identity(tensor), None)

    def __contains__(self, tensor: Any) -> bool:
        reference_and_version = self._rows.get(_identity(tensor))
        return reference_and_version is not None and reference_and_version[1] == tensor._version


class KnownTensors:
    """The tensors of one program whose values are known."""

    def __init__(self) -> None:
        self.uninitialized = UninitializedTensors()
        self._known: _Versions | None = None
        self._written = _Versions()
        """What the first call may have written."""
        self._has_read_unknown = False

    def is_known(self, tensor: Any) -> bool:
        """Whether a tensor has the values that it would have on a GPU."""
        return self._known is None or (_is_followed(tensor) and tensor in self._known)

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
        tensors = [*filter(_is_followed, tensors_in(arguments))]
        kinds = _written_types(text()) if tensors else None
        written = [tensor for tensor in tensors if kinds is None or _type_of(tensor) in kinds]
        has_indices = kinds is not None and any(
            _type_of(x) in ("i32", "i64") and 0 < x.numel() <= MAX_RECORDED_ELEMENTS for x in written
        )
        is_known = has_indices and all(map(self.is_known, tensors_in(inputs))) and interpret()
        for tensor in written:
            if self._known is None:
                (self._written.discard if is_known else self._written.add)(tensor)
            else:
                (self._known.add if is_known else self._known.discard)(tensor)

    def remember_tensors(self) -> None:
        """Remember the existing tensors, on the first call."""
        if self._known is None:
            self._known = _Versions()
            is_frozen = gc.get_freeze_count() > 0
            gc.unfreeze()  # frozen objects are not listed
            for tensor in filter(_is_followed, gc.get_objects()):
                if tensor not in self._written:
                    self._known.add(tensor)
            if is_frozen:
                gc.freeze()

    def note_read(self, value: Any) -> None:
        """Note that the program reads values: if they are unknown, whatever follows may depend on them."""
        self._has_read_unknown |= not self.is_known(value)

    def follow(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Call a function of torch, and mark its results."""
        if self._known is None:
            return function(*args, **options)
        name = getattr(function, "__name__", "")
        operands = [*tensors_in((*args, *options.values()))]
        is_known = all(map(self.is_known, operands))
        versions = [(tensor, tensor._version) for tensor in operands if _is_followed(tensor)]
        result = function(*args, **options)
        self._has_read_unknown |= not is_known and _is_shaped_by_values(name, args)
        is_known &= not self._has_read_unknown
        results = [tensor for tensor, version in versions if tensor._version != version]
        if not name.startswith(("empty", "new_empty")):
            results += filter(_is_followed, tensors_in((result,))) if is_known else ()
        for tensor in results:
            (self._known.add if is_known else self._known.discard)(tensor)
        return result

    def forget(self, tensor: Any) -> None:
        """Note that a tensor was created without values."""
        self.uninitialized.add(tensor)
        if self._known is not None and _is_followed(tensor):
            self._known.discard(tensor)


class UninitializedTensors:
    """The storages that were created without values, and that neither the program nor a kernel has written since."""

    def __init__(self) -> None:
        self._unwritten = _Versions()
        self._numbers: dict[int, tuple[Any, int]] = {}
        """Identity of a storage, written or not → a weak reference, and its number."""
        self.filled: set[int] = set()
        """Numbers of the storages of which the program filled a part."""

    def add(self, tensor: Any) -> None:
        """Add the storage of a tensor that was just created."""
        if not tensor.is_inference():  # it has no version
            self._unwritten.add(tensor)
            self._numbers[_identity(tensor)] = (_reference_to(tensor), len(self._numbers))

    def discard(self, tensor: Any) -> None:
        """Note that a tensor may be written in a way that leaves its version."""
        self._unwritten.discard(tensor)

    def note_fill(self, name: str, tensor: Any, *args: Any) -> int | None:
        """Note a call of one of `FILLS`; returns the number of a storage that it is the first to fill in part.

        One that fills all of a storage only replaces what a kernel wrote.
        """
        _, number = self._numbers.get(_identity(tensor), (None, None)) if _is_followed(tensor) else (None, None)
        if number is None or number in self.filled:
            return None
        selects = name in _FILLS_OF_PARTS or any(True for _ in tensors_in(args[:1] if name == "__setitem__" else ()))
        elements = (tensor[args[0]] if name == "__setitem__" and not selects else tensor).numel()
        if not selects and elements * tensor.element_size() >= tensor.untyped_storage().nbytes():
            return None
        self.filled.add(number)
        return number

    def find_initialized(self, arguments: Mapping[str, Any], *, writes: bool) -> list[str]:
        """Names of the tensors among some arguments of a launch that are initialized.

        Args:
            writes: whether the launch may initialize the others.
        """
        tensors = _tensors_of(arguments)
        initialized = [name for name, tensor in tensors.items() if tensor not in self._unwritten]
        for tensor in tensors.values() if writes else ():
            self._unwritten.discard(tensor)
        return initialized

    def number_storages(self, arguments: Mapping[str, Any]) -> dict[str, int]:
        """Names of the tensors among some arguments that were created without values → number of their storage."""
        identities = {name: _identity(tensor) for name, tensor in _tensors_of(arguments).items()}
        return {name: self._numbers[one][1] for name, one in identities.items() if one in self._numbers}


def _tensors_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    tensors = {name: find_wrapped_tensor(value) for name, value in arguments.items()}
    return {name: tensor for name, tensor in tensors.items() if hasattr(tensor, "untyped_storage")}


def _reference_to(tensor: Any) -> Any:
    from torch.multiprocessing import reductions  # programs without torch are captured, too

    return vars(reductions)["StorageWeakRef"](tensor.untyped_storage())


def _is_followed(value: Any) -> bool:
    """Whether a value is a tensor with data and a version."""
    torch = sys.modules.get("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return not value.is_meta and value.layout == torch.strided and not value.is_inference()


def _is_shaped_by_values(name: str, args: tuple[Any, ...]) -> bool:
    if name in ("__getitem__", "repeat_interleave"):  # a mask, or the number of repeats
        return any(name[0] == "r" or _type_of(tensor) == "i8" for tensor in tensors_in(args[1:]))
    return name in _SHAPED_BY_VALUES or (name == "where" and len(args) == 1)


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

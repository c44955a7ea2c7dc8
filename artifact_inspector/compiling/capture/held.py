"""Track which small integer tensors have the values, at a launch, that they would have on a GPU.

No kernel runs, so the values that kernels would write are missing. Until the first call of a kernel is over,
every tensor has its real values. After that, a tensor is known if it existed before the call, the program has
not written to it since, and it was passed to no kernel that may write values of its type.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from artifact_inspector.compiling.arguments import MOST_VALUES

_WRITES = re.compile(r"tt\.(?:store|atomic_\w+)\b")
_TYPE = re.compile(r"!tt\.ptr<([a-z]\w*)")
_ANY = (
    "int_to_ptr",
    "bitcast",
    "tensordesc",
    "tensor_desc",
    "tt.call",
    "ptr<tensor",
    "inline_asm",
    "extern_",
)
"""Operations after which a kernel may write through pointers of another type, or to unknown addresses."""


class Held:
    """The tensors of one program whose values are known."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, int]] | None = None
        """Address of a storage → the storage, referenced so that its address is not reused, and its
        version."""
        self._written: set[int] = set()

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor has the values that it would have on a GPU."""
        if self._kept is None:
            return True
        held = self._kept.get(_address(tensor))
        return held is not None and held[1] == tensor._version

    def launched(self, given: Iterable[Any], text: Callable[[], str | None]) -> None:
        """Mark the tensors that a kernel may write as unknown.

        Args:
            given: arguments of the launch.
            text: the kernel's first stage; None if it is not available.
        """
        tensors = [value for value in given if _is_small(value)]
        if not tensors:
            return
        kinds = _written(text())
        for tensor in tensors:
            if kinds is None or 8 * tensor.element_size() in kinds:
                at = _address(tensor)
                self._written.add(at)
                if self._kept is not None:
                    self._kept.pop(at, None)

    def call_ended(self) -> None:
        """Remember the existing tensors, on the first call."""
        if self._kept is None:
            there = [value for value in gc.get_objects() if _is_small(value)]
            kept = {_address(tensor): (tensor.untyped_storage(), tensor._version) for tensor in there}
            self._kept = {at: held for at, held in kept.items() if at not in self._written}


def _is_small(value: Any) -> bool:
    torch = sys.modules.get("torch")
    if (
        torch is None
        or not issubclass(type(value), torch.Tensor)
        or value.is_meta
        or value.layout != torch.strided
    ):
        return False
    integers = str(value.dtype).removeprefix("torch.").startswith(("int", "uint", "bool"))
    return integers and not value.is_inference() and 0 < value.numel() <= MOST_VALUES


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _written(text: str | None) -> frozenset[int] | None:
    """Bit widths of the integers that a kernel writes, by its text; None if it may write any.

    Example:
        >>> sorted(_written("tt.store %p, %v : tensor<64x!tt.ptr<f16>>"))
        []
        >>> sorted(_written("tt.atomic_rmw add, %p, %v : (tensor<64x!tt.ptr<i32>>) -> tensor<64xi32>"))
        [32]
    """
    if text is None or any(word in text for word in _ANY):
        return None
    kinds = {kind for line in text.splitlines() if _WRITES.search(line) for kind in _TYPE.findall(line)}
    return frozenset(int(kind[1:]) for kind in kinds if re.fullmatch(r"i\d+", kind))

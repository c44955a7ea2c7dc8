"""The values of all tensors of a launch, which stores and atomics change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.values import BoolArray, IntArray
from artifact_inspector.model.float_formats import Rounding


class PlacedTensor(Protocol):
    """A tensor in memory: its addresses, and its bytes where they were given."""

    start: int
    stop: int
    content: NDArray[np.uint8] | None


class LaunchValues:
    """The bytes of tensors, and which of them are known and were written.

    Args:
        tensors: sorted by address.
        rounding: of the arithmetic on data.
    """

    def __init__(self, tensors: Sequence[PlacedTensor], rounding: Rounding) -> None:
        self.rounding = rounding
        self._tensors = tensors
        self._starts = np.array([tensor.start for tensor in tensors], np.int64)
        sizes = [tensor.stop - tensor.start for tensor in tensors]
        self._content = [
            np.zeros(size, np.uint8) if tensor.content is None else tensor.content.copy()
            for tensor, size in zip(tensors, sizes, strict=True)
        ]
        self._known = [np.full(size, t.content is not None) for t, size in zip(tensors, sizes, strict=True)]
        self._writers = [np.full(size, -1, np.int32) for size in sizes]

    def stored(self, start: int, size: int) -> tuple[NDArray[np.uint8], BoolArray, NDArray[np.int32]]:
        """The bytes from an address on, which of them are known, and the step that wrote each last, or -1."""
        at = int(np.searchsorted(self._starts, start, side="right")) - 1
        span = slice(start - int(self._starts[at]), start - int(self._starts[at]) + size)
        return self._content[at][span], self._known[at][span], self._writers[at][span]

    def load(self, addresses: IntArray, size: int) -> tuple[IntArray, BoolArray]:
        """The words of up to 8 bytes at some addresses, and where they are known."""
        words, known = np.zeros(addresses.shape, np.int64), np.zeros(addresses.shape, bool)
        for at, lanes, offsets in self._split(addresses, size):
            content = self._content[at]
            word = np.zeros(offsets.shape, np.int64)
            is_known = np.ones(offsets.shape, bool)
            for byte in range(size):
                word |= content[offsets + byte].astype(np.int64) << 8 * byte
                is_known &= self._known[at][offsets + byte]
            words[lanes], known[lanes] = word, is_known
        return words, known

    def store(self, addresses: IntArray, size: int, words: IntArray, known: BoolArray, step: int) -> None:
        """Store the words of up to 8 bytes of a step; those that are not known leave unknown bytes."""
        for at, lanes, offsets in self._split(addresses, size):
            for byte in range(size):
                self._content[at][offsets + byte] = words[lanes] >> 8 * byte & 0xFF
                self._known[at][offsets + byte] = known[lanes]
                self._writers[at][offsets + byte] = step

    def update(
        self,
        addresses: IntArray,
        size: int,
        known: BoolArray,
        step: int,
        function: Callable[[IntArray, IntArray], IntArray],
    ) -> tuple[IntArray, BoolArray]:
        """Update words one lane after the other where lanes share an address; returns the old words.

        Args:
            addresses: of the lanes.
            size: bytes, up to 8.
            known: where the operands are known.
            step: the step.
            function: old words and the numbers of their lanes → new words.
        """
        old_words, old_known = np.zeros(addresses.shape, np.int64), np.zeros(addresses.shape, bool)
        waiting = np.arange(len(addresses))
        while waiting.size:
            _, first = np.unique(addresses[waiting], return_index=True)
            lanes = waiting[first]
            words, is_known = self.load(addresses[lanes], size)
            old_words[lanes], old_known[lanes] = words, is_known
            self.store(addresses[lanes], size, function(words, lanes), is_known & known[lanes], step)
            waiting = np.delete(waiting, first)
        return old_words, old_known

    def _split(self, addresses: IntArray, size: int) -> list[tuple[int, IntArray, IntArray]]:
        """For each tensor: its number, the lanes that are in it, and their offsets."""
        numbers = np.searchsorted(self._starts, addresses, side="right") - 1
        parts = []
        for at in np.unique(numbers[numbers >= 0]).tolist():
            lanes = np.flatnonzero((numbers == at) & (addresses + size <= self._tensors[at].stop))
            parts.append((at, lanes, addresses[lanes] - self._starts[at]))
        return parts

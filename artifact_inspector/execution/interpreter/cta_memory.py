"""Shared and local memory of some CTAs; only known content is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.values import BoolArray, IntArray, Value

MOST_SHARED_BYTES = 1 << 20
"""Bytes of shared memory that are kept. No GPU has more; stores beyond it are unknown."""
_KNOWN_WORD = 0x01010101
"""Known marks of the four bytes of a word."""


class CapacityExceeded(Exception):  # noqa: N818 - no error: the speculative run is too large
    """The content would exceed the allowed size."""


class CtaMemory:
    """The known content of shared or local memory of some CTAs.

    Words that all lanes access at the same offset (most of local memory) are kept by that offset, with a value for each
    lane. Shared memory, which lanes address individually, is kept as bytes by CTA, or once if all CTAs agree.
    """

    def __init__(self) -> None:
        self.lane_words: dict[int, Value] = {}
        self.content: NDArray[np.uint8] | None = None
        self.known_marks: NDArray[np.uint8] | None = None
        """1 for every known byte."""
        self.missing_inputs = 0
        """Missing inputs of unknown values that were stored anywhere."""
        self.byte_limit = 1 << 62
        """Most bytes of all CTAs together."""

    def fork(self, rows: IntArray) -> CtaMemory:
        """The shared content of some CTAs, which may be repeated, without words of lanes."""
        forked = CtaMemory()
        forked.missing_inputs, forked.byte_limit = self.missing_inputs, self.byte_limit
        if self.content is not None and self.known_marks is not None:
            is_shared = len(self.content) == 1
            forked.content = self.content.copy() if is_shared else self.content[rows]
            forked.known_marks = self.known_marks.copy() if is_shared else self.known_marks[rows]
        return forked

    def store(self, addresses: IntArray, size: int, value: IntArray | None, mask: BoolArray) -> None:
        """Store up to 4 bytes of each lane; None stores unknown bytes.

        Args:
            addresses: shape (CTAs, threads), or (1, threads) if neither addresses nor values differ between CTAs.
            size: bytes per lane.
            value: same shape.
            mask: lanes that store.
        """
        if value is None and self.content is None:
            return
        if self.content is not None and len(self.content) > len(addresses):
            shape = (len(self.content), addresses.shape[1])
            addresses, mask = np.broadcast_to(addresses, shape), np.broadcast_to(mask, shape)
            value = None if value is None else np.broadcast_to(value, shape)
        mask = mask & (addresses >= 0) & (addresses <= MOST_SHARED_BYTES - size)
        if not mask.any():
            return
        stop = int(addresses[mask].max()) + size
        if (
            value is None
            and self.known_marks is not None
            and not self.known_marks[:, int(addresses[mask].min()) : stop].any()
        ):
            return  # all of it was unknown already
        self._grow(addresses.shape[0], stop)
        assert self.content is not None
        assert self.known_marks is not None
        is_word_access, positions, is_uniform = _byte_positions(addresses, size, mask)
        for byte in range(1 if is_word_access else size):
            content_array, known_array = self._planes(is_word_access)
            index_key = _index(mask, positions, byte, is_uniform)
            known_array[index_key] = (_KNOWN_WORD if is_word_access else 1) if value is not None else 0
            if value is not None:
                stored_values = value[:, mask[0]] if is_uniform else value[mask]
                content_array[index_key] = stored_values if is_word_access else (stored_values >> (8 * byte)) & 0xFF

    def _planes(self, is_word_access: bool) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]:
        """Content and known marks, by words or by bytes."""
        assert self.content is not None
        assert self.known_marks is not None
        if is_word_access:
            return self.content.view("<u4"), self.known_marks.view("<u4")
        return self.content, self.known_marks

    def _grow(self, rows: int, size: int) -> None:
        if rows * size > self.byte_limit:
            raise CapacityExceeded
        if self.content is None or self.known_marks is None:
            size = -(-size // 4) * 4
            self.content, self.known_marks = (np.zeros((rows, size), np.uint8), np.zeros((rows, size), np.uint8))
            return
        if len(self.content) < rows:
            self.content, self.known_marks = (self.content.repeat(rows, axis=0), self.known_marks.repeat(rows, axis=0))
        if self.content.shape[1] < size:
            added_bytes = -(-max(size, 2 * self.content.shape[1]) // 4) * 4 - self.content.shape[1]
            self.content = np.pad(self.content, ((0, 0), (0, added_bytes)))
            self.known_marks = np.pad(self.known_marks, ((0, 0), (0, added_bytes)))

    def make_unknown(self, start: int | None = None, stop: int | None = None) -> None:
        """Make a range unknown."""
        if self.known_marks is not None:
            self.known_marks[:, slice(start, stop)] = 0

    def load(self, addresses: IntArray, size: int, mask: BoolArray) -> tuple[IntArray, BoolArray] | None:
        """Up to 4 bytes of each lane, and where they are known; None if none is."""
        if self.content is None or self.known_marks is None:
            return None
        if len(self.content) > len(addresses):
            shape = (len(self.content), addresses.shape[1])
            addresses, mask = np.broadcast_to(addresses, shape), np.broadcast_to(mask, shape)
        elif len(self.content) < len(addresses):
            self._grow(len(addresses), self.content.shape[1])
        inside = mask & (addresses >= 0) & (addresses + size <= self.content.shape[1])
        if not inside.any():
            return None
        is_word_access, positions, is_uniform = _byte_positions(addresses, size, inside)
        words = np.zeros(addresses.shape, np.int64)
        all_known = np.ones((len(addresses), positions.shape[-1]) if is_uniform else positions.shape, bool)
        loaded = np.zeros(all_known.shape, np.int64)
        for byte in range(1 if is_word_access else size):
            content_array, known_array = self._planes(is_word_access)
            index_key = _index(inside, positions, byte, is_uniform)
            loaded |= content_array[index_key].astype(np.int64) << (8 * byte)
            all_known &= known_array[index_key] == (_KNOWN_WORD if is_word_access else 1)
        if not all_known.any():
            return None
        known_lanes = np.zeros(addresses.shape, bool)
        if is_uniform:
            words[:, inside[0]], known_lanes[:, inside[0]] = loaded, all_known
        else:
            words[inside], known_lanes[inside] = loaded, all_known
        return words, known_lanes


def _index(mask: BoolArray, positions: IntArray, byte: int, is_uniform: bool) -> tuple[slice | IntArray, IntArray]:
    """CTAs and positions of the lanes in a mask."""
    return (slice(None), positions[0] + byte) if is_uniform else (np.nonzero(mask)[0], positions + byte)


def _byte_positions(addresses: IntArray, size: int, mask: BoolArray) -> tuple[bool, IntArray, bool]:
    """How to index the bytes of lanes.

    Returns:
        Whether they are whole words; the indices of these words, or of the first bytes, for the lanes in the mask;
            whether these are the same in all CTAs, and so listed once.
    """
    is_uniform = addresses.strides[0] == 0 and bool((mask == mask[:1]).all())
    positions = addresses[:1, mask[0]] if is_uniform else addresses[mask]
    is_word_access = size == 4 and not (positions & 3).any()
    return is_word_access, positions >> 2 if is_word_access else positions, is_uniform

"""Shared and local memory of some CTAs; only known content is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import FULL, Mask, Unknown, Value, choose, rows_of

MOST_SHARED = 1 << 20
"""Bytes of shared memory that are kept. No GPU has more; stores beyond it are unknown."""
_KNOWN = 0x01010101
"""Known marks of the four bytes of a word."""


class Full(Exception):  # noqa: N818 - no error: the speculative run is too large
    """The content would exceed the allowed size."""


class Scratch:
    """The known content of shared or local memory of some CTAs.

    Words that all lanes access at the same offset (most of local memory) are kept by that offset, with a
    value for each lane. Shared memory, which lanes address individually, is kept as bytes by CTA, or once if
    all CTAs agree.
    """

    def __init__(self) -> None:
        self.words: dict[int, Value] = {}
        self.data: NDArray[np.uint8] | None = None
        self.known: NDArray[np.uint8] | None = None
        """1 for every known byte."""
        self.why = 0
        """Missing inputs of unknown values that were stored anywhere."""
        self.most = 1 << 62
        """Most bytes of all CTAs together."""

    def copy(self) -> Scratch:
        """A copy with the same content."""
        other = Scratch()
        other.words, other.why = dict(self.words), self.why
        if self.data is not None and self.known is not None:
            other.data, other.known = self.data.copy(), self.known.copy()
        return other

    def keep(self, rows: NDArray[Any]) -> None:
        """Drop the content of all but some CTAs."""
        self.words = {at: rows_of(value, rows) for at, value in self.words.items()}
        if self.data is not None and self.known is not None and len(self.data) > 1:
            self.data, self.known = self.data[rows], self.known[rows]

    def repeat(self, count: int) -> None:
        """Repeat the content for `count` times as many CTAs."""
        if self.data is not None and self.known is not None and len(self.data) > 1:
            self.data, self.known = np.tile(self.data, (count, 1)), np.tile(self.known, (count, 1))

    # Words that every lane has for itself.

    def store_word(self, at: int, value: Value, mask: Mask) -> None:
        """Store a word of each lane."""
        if mask is not True:
            value = choose(mask, value, self.words.get(at, Unknown(0, FULL, 0)))
        self.words[at] = value

    def load_word(self, at: int) -> Value | None:
        """A word of each lane; None if nothing was stored."""
        return self.words.get(at)

    # Bytes that the lanes of a CTA share.

    def store(
        self,
        addresses: NDArray[np.int64],
        size: int,
        value: NDArray[np.int64] | None,
        mask: NDArray[np.bool_],
    ) -> None:
        """Store up to 4 bytes of each lane; None stores unknown bytes.

        Args:
            addresses: shape (CTAs, threads), or (1, threads) if neither addresses nor values differ between
                CTAs.
            size: bytes per lane.
            value: same shape.
            mask: lanes that store.
        """
        if value is None and self.data is None:
            return
        if self.data is not None and len(self.data) > len(addresses):
            shape = (len(self.data), addresses.shape[1])
            addresses, mask = np.broadcast_to(addresses, shape), np.broadcast_to(mask, shape)
            value = None if value is None else np.broadcast_to(value, shape)
        mask = mask & (addresses >= 0) & (addresses <= MOST_SHARED - size)
        if not mask.any():
            return
        stop = int(addresses[mask].max()) + size
        if (
            value is None
            and self.known is not None
            and not self.known[:, int(addresses[mask].min()) : stop].any()
        ):
            return  # all of it was unknown already
        self._grow(addresses.shape[0], stop)
        assert self.data is not None
        assert self.known is not None
        whole, at, same = _pieces(addresses, size, mask)
        for byte in range(1 if whole else size):
            data, known = (_words(self.data), _words(self.known)) if whole else (self.data, self.known)
            place: Any = (slice(None), at[0] + byte) if same else (_rows_in(mask), at + byte)
            known[place] = (_KNOWN if whole else 1) if value is not None else 0
            if value is not None:
                taken = value[:, mask[0]] if same else value[mask]
                data[place] = taken if whole else (taken >> (8 * byte)) & 0xFF

    def _grow(self, rows: int, size: int) -> None:
        if rows * size > self.most:
            raise Full
        if self.data is None or self.known is None:
            size = -(-size // 4) * 4
            self.data, self.known = np.zeros((rows, size), np.uint8), np.zeros((rows, size), np.uint8)
            return
        if len(self.data) < rows:
            self.data, self.known = self.data.repeat(rows, axis=0), self.known.repeat(rows, axis=0)
        if self.data.shape[1] < size:
            more = -(-max(size, 2 * self.data.shape[1]) // 4) * 4 - self.data.shape[1]
            self.data = np.pad(self.data, ((0, 0), (0, more)))
            self.known = np.pad(self.known, ((0, 0), (0, more)))

    def forget(self, start: int | None = None, stop: int | None = None) -> None:
        """Make a range unknown."""
        if self.known is not None:
            self.known[:, slice(start, stop)] = 0

    def load(
        self, addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Up to 4 bytes of each lane, and where they are known; None if none is."""
        if self.data is None or self.known is None:
            return None
        if len(self.data) > len(addresses):
            shape = (len(self.data), addresses.shape[1])
            addresses, mask = np.broadcast_to(addresses, shape), np.broadcast_to(mask, shape)
        elif len(self.data) < len(addresses):
            self._grow(len(addresses), self.data.shape[1])
        inside = mask & (addresses >= 0) & (addresses + size <= self.data.shape[1])
        if not inside.any():
            return None
        whole, at, same = _pieces(addresses, size, inside)
        found = np.zeros(addresses.shape, np.int64)
        known = np.ones((len(addresses), at.shape[-1]) if same else at.shape, bool)
        held = np.zeros(known.shape, np.int64)
        for byte in range(1 if whole else size):
            data, sure = (_words(self.data), _words(self.known)) if whole else (self.data, self.known)
            place: Any = (slice(None), at[0] + byte) if same else (_rows_in(inside), at + byte)
            held |= data[place].astype(np.int64) << (8 * byte)
            known &= sure[place] == (_KNOWN if whole else 1)
        if not known.any():
            return None
        told = np.zeros(addresses.shape, bool)
        if same:
            found[:, inside[0]], told[:, inside[0]] = held, known
        else:
            found[inside], told[inside] = held, known
        return found, told


def _words(held: NDArray[np.uint8]) -> NDArray[np.uint32]:
    return held.view("<u4")


def _rows_in(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The CTA of each lane in a mask."""
    return np.nonzero(mask)[0]


def _pieces(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_]
) -> tuple[bool, NDArray[np.int64], bool]:
    """How to index the bytes of lanes.

    Returns:
        Whether they are whole words; the indices of these words, or of the first bytes, for the lanes in the
            mask;
        whether these are the same in all CTAs, and so listed once.
    """
    same = addresses.strides[0] == 0 and bool((mask == mask[:1]).all())
    at = addresses[:1, mask[0]] if same else addresses[mask]
    whole = size == 4 and not (at & 3).any()
    return whole, at >> 2 if whole else at, same

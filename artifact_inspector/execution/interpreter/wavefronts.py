"""What accesses to memory cost on NVIDIA's GPUs: sectors of global memory, wavefronts of shared memory.

What is counted is what ncu counts: sectors of 32 bytes for each request of a warp, and wavefronts of 32
banks of 4 bytes.

**Source** Nsight Compute documentation, "Memory Tables" (sectors, requests, wavefronts, bank conflicts);
the rest was measured with ncu on an H200, see docs/prediction.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.footprints import SECTOR

BANKS = 32
"""Banks of shared memory, of 4 bytes each."""
LINE = 4 * BANKS
"""Bytes of a line of the first-level cache, and of a row of all banks."""
_NONE = np.iinfo(np.int64).max


def count_sectors(addresses: NDArray[np.int64], mask: NDArray[np.bool_] | None, piece: int = SECTOR) -> int:
    """Distinct sectors, or lines, of the lanes in each row, added up.

    Args:
        addresses: shape (warps, lanes); an access does not cross a sector.
        mask: lanes that take part, all where None.
        piece: bytes of a sector or a line.
    """
    sectors = addresses >> (piece.bit_length() - 1)
    if mask is None:
        steps = sectors[:, 1:] - sectors[:, :-1]
        if (steps >= 0).all():
            return len(sectors) + int(np.count_nonzero(steps))
    else:
        sectors = np.where(mask, sectors, _NONE)
    sectors = np.sort(sectors, axis=1)
    found = int(np.count_nonzero(sectors[:, 1:] != sectors[:, :-1])) + len(sectors)
    return found if mask is None else found - int(np.count_nonzero(sectors[:, -1] == _NONE))


def served_together(size: int) -> int:
    """Lanes of a warp whose accesses of some bytes to shared memory are served at a time.

    Measured with ncu on an H200: all of them up to 4 bytes, half of them for 8, a quarter for 16.
    """
    return 32 * 4 // max(4, min(size, 16))


def count_wavefronts(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, *, loads: bool = False
) -> tuple[int, int]:
    """Wavefronts of accesses to shared memory, and how many there would be without bank conflicts.

    A load of 8 or 16 bytes serves twice as many lanes at once where neighbours want the same (each lane and
    the one beside it, or each and the one two away, of those that take part) and no bank is asked twice.

    Args:
        addresses: shape (rows, lanes); a row is a whole warp, or what an opcode serves at a time.
        size: bytes of each lane.
        mask: lanes that take part, all where None.
        loads: it is a load.
    """
    together = min(served_together(size), addresses.shape[1])
    words = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    found = _count_served(words.reshape(-1, together), size)
    if loads and addresses.shape[1] >= 2 * together:
        found = found.reshape(-1, 2).sum(axis=1)
        found[_at_once(words.reshape(-1, 2 * together), size)] = 1
    return _with_ideal(found.reshape(len(addresses), -1).sum(axis=1), words >= 0, size)


def _with_ideal(found: NDArray[np.int64], active: NDArray[np.bool_], size: int) -> tuple[int, int]:
    """Wavefronts of all rows; without conflicts, those that the lanes' bytes fill, where that is fewer."""
    filled = -(-active.sum(axis=1) * size // (4 * BANKS))
    return int(found.sum()), int(np.minimum(found, filled).sum())


def groups_served(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], *, loads: bool
) -> list[range]:
    """Lanes of one row that are served together, by the rule of `count_wavefronts`."""
    lanes = len(addresses)
    together = min(served_together(size), lanes)
    if not loads or lanes < 2 * together:
        return [range(first, first + together) for first in range(0, lanes, together)]
    groups: list[range] = []
    at_once = _at_once(np.where(mask, addresses >> 2, -1).reshape(-1, 2 * together), size)
    for first, joined in zip(range(0, lanes, 2 * together), at_once, strict=True):
        middle, last = first + together, first + 2 * together
        groups += [range(first, last)] if joined else [range(first, middle), range(middle, last)]
    return groups


def _at_once(words: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Rows of twice as many lanes as are served together that are served in one wavefront for all that."""
    joined = _neighbours_agree(words, 1) | _neighbours_agree(words, 2)
    if joined.any():
        joined[joined] = _count_served(words[joined], size) == 1
    return joined


def _neighbours_agree(words: NDArray[np.int64], apart: int) -> NDArray[np.bool_]:
    """Rows whose lanes want the same as the lane whose number differs by a bit, or are alone."""
    other = words[:, np.arange(words.shape[1]) ^ apart]
    agrees: NDArray[np.bool_] = ((words == other) | (words < 0) | (other < 0)).all(axis=1)
    return agrees


def _all_words(words: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Every word that lanes ask for, by the first of each; negative where it takes no part."""
    parts = max(size // 4, 1)
    if parts == 1:
        return words
    return np.where(words[:, :, None] < 0, -1, words[:, :, None] + np.arange(parts)).reshape(len(words), -1)


def _count_served(words: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Wavefronts of each row of lanes that are served together: a bank serves its distinct words in turn."""
    words = np.sort(_all_words(words, size), axis=1)
    fresh = words >= 0
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    return _busiest(np.where(fresh, words, -1))


def _busiest(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many words of each row are in the bank that has most of them."""
    rows, _ = np.nonzero(words >= 0)
    banks = np.bincount(rows * BANKS + words[words >= 0] % BANKS, minlength=len(words) * BANKS)
    most: NDArray[np.int64] = banks.reshape(-1, BANKS).max(axis=1)
    return most


def count_atomics(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, operands: int = 1
) -> tuple[int, int]:
    """Wavefronts of atomics on shared memory, one after the other where they share a bank, or an address.

    Args:
        addresses: shape (warps, lanes).
        size: bytes of each lane.
        mask: lanes that take part, all where None.
        operands: that each lane brings, two to compare and swap.
    """
    words = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    found, ideal = _with_ideal(_busiest(_all_words(words, size)), words >= 0, size)
    return operands * found, operands * ideal


def count_copied(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> tuple[int, int]:
    """Wavefronts of asynchronous copies through the L1, and how many there would be without conflicts.

    Lanes are served by their words in shared memory, and wait for one another where their words in global
    memory are in the same bank; neither is shared. Those that are in one bank of both wait once.

    Args:
        addresses: in shared memory, shape (warps, lanes).
        size: bytes of each lane.
        mask: lanes that take part.
        origins: in global memory; lanes whose is negative write zeros.
    """
    found = _copied(addresses, size, mask, origins)
    return _with_ideal(found, mask, size)


def _copied(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Wavefronts of each warp's copy through the L1."""
    together = served_together(size)
    into = _all_words(np.where(mask, addresses >> 2, -1).reshape(-1, together), size)
    out = _all_words(np.where(mask & (origins >= 0), origins >> 2, -1).reshape(-1, together), size)
    rows, _ = np.nonzero(out >= 0)
    pairs = np.bincount(
        (rows * BANKS + out[out >= 0] % BANKS) * BANKS + into[out >= 0] % BANKS,
        minlength=len(out) * BANKS * BANKS,
    ).reshape(len(out), BANKS, BANKS)  # lanes by the bank that they read and the bank that they write
    waits = (pairs.sum(axis=2) - pairs.max(axis=2)).max(axis=1)
    found: NDArray[np.int64] = (_busiest(into) + waits).reshape(len(addresses), -1).sum(axis=1)
    return found


def count_copied_past(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> tuple[int, int]:
    """The same of copies past the L1, which are written as they come from the second-level cache.

    Of lanes that are served together, those are written at once that come of one line, go to one row of all
    banks, as far away (by 64 bytes), and fill the same half of a sector; two neighbours that fill a sector of
    each are one. Where any lane of a warp writes zeros, all of its lanes copy through the L1 on top of that.
    """
    together = served_together(size)
    reads = mask & (origins >= 0)
    filling = (mask & ~reads).any(axis=1)
    found = ideal = 0
    if filling.any():
        found, ideal = count_copied(addresses[filling], size, mask[filling], origins[filling])
    ideal += int((-(-reads.sum(axis=1) * size // (4 * BANKS))).sum())
    beside = np.arange(addresses.shape[1]) ^ 1
    whole = reads & reads[:, beside]
    for sectors in (origins // SECTOR, addresses // SECTOR):
        whole &= sectors == sectors[:, beside]
    piece = np.where(whole, SECTOR, size)
    away = (addresses // piece - origins // piece) * piece % 64
    half = np.where(whole, 2, origins // size % 2)
    written = ((origins // LINE * (1 << 20) + addresses // LINE) * 64 + away) * 4 + half
    written = np.sort(np.where(reads, written, -1).reshape(-1, together), axis=1)
    found += int(np.count_nonzero((written[:, 1:] != written[:, :-1]) & (written[:, 1:] >= 0)))
    found += int(np.count_nonzero(written[:, 0] >= 0))
    return found, ideal

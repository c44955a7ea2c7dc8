"""Costs of memory accesses on NVIDIA GPUs: sectors of global memory, wavefronts of shared memory.

The counts are those of ncu: 32-byte sectors for each request of a warp, and wavefronts over 32 banks of 4
bytes.

**Source** Nsight Compute documentation, "Memory Tables" (sectors, requests, wavefronts, bank conflicts). The
rest was measured with ncu on an H200, see docs/prediction.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.footprints import SECTOR

BANKS = 32
"""Shared memory banks, 4 bytes each."""
LINE = 4 * BANKS
"""Bytes of an L1 cache line, and of one word of every bank."""
_NONE = np.iinfo(np.int64).max


def count_sectors(addresses: NDArray[np.int64], mask: NDArray[np.bool_] | None, piece: int = SECTOR) -> int:
    """Distinct sectors, or lines, of each row of lanes, totalled.

    Args:
        addresses: shape (warps, lanes); an access does not cross a sector.
        mask: lanes that take part; None means all.
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
    """Lanes of a warp whose shared memory accesses of some size are served together.

    Measured with ncu on an H200: 32 lanes up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes.
    """
    return 32 * 4 // max(4, min(size, 16))


def count_wavefronts(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, *, loads: bool = False
) -> tuple[int, int]:
    """Wavefronts of accesses to shared memory, and how many there would be without bank conflicts.

    A load of 8 or 16 bytes serves twice as many lanes at once if neighbours request the same words and no
    bank has a conflict. Neighbours are lanes whose numbers differ by 1, or by 2, among those that take part.

    Args:
        addresses: shape (rows, lanes); a row is a whole warp, or the lanes that an opcode serves at a time.
        size: bytes per lane.
        mask: lanes that take part; None means all.
        loads: whether it is a load.
    """
    together = min(served_together(size), addresses.shape[1])
    words = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    found = _count_served(words.reshape(-1, together), size)
    if loads and addresses.shape[1] >= 2 * together:
        found = found.reshape(-1, 2).sum(axis=1)
        found[_at_once(words.reshape(-1, 2 * together), size)] = 1
    return _with_ideal(found.reshape(len(addresses), -1).sum(axis=1), words >= 0, size)


def _with_ideal(found: NDArray[np.int64], active: NDArray[np.bool_], size: int) -> tuple[int, int]:
    """Wavefronts of all rows, and the ideal number: the words of the lanes divided by the banks, if fewer."""
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
    """Rows, of twice as many lanes as are served together, that one wavefront serves nevertheless."""
    joined = _neighbours_agree(words, 1) | _neighbours_agree(words, 2)
    if joined.any():
        joined[joined] = _count_served(words[joined], size) == 1
    return joined


def _neighbours_agree(words: NDArray[np.int64], apart: int) -> NDArray[np.bool_]:
    """Rows in which each lane and the one whose number differs by a bit want the same, or one is inactive."""
    other = words[:, np.arange(words.shape[1]) ^ apart]
    agrees: NDArray[np.bool_] = ((words == other) | (words < 0) | (other < 0)).all(axis=1)
    return agrees


def _all_words(words: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """All words of lanes from their first words; negative for lanes that do not take part."""
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
    """Words of the busiest bank of each row."""
    rows, _ = np.nonzero(words >= 0)
    banks = np.bincount(rows * BANKS + words[words >= 0] % BANKS, minlength=len(words) * BANKS)
    most: NDArray[np.int64] = banks.reshape(-1, BANKS).max(axis=1)
    return most


def count_atomics(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_] | None, operands: int = 1
) -> tuple[int, int]:
    """Wavefronts of atomics on shared memory, which are serialized by bank and by address.

    Args:
        addresses: shape (warps, lanes).
        size: bytes per lane.
        mask: lanes that take part; None means all.
        operands: operands per lane; two for compare-and-swap.
    """
    words = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    found, ideal = _with_ideal(_busiest(_all_words(words, size)), words >= 0, size)
    return operands * found, operands * ideal


def count_copied(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> tuple[int, int]:
    """Wavefronts of asynchronous copies through L1, and how many there would be without conflicts.

    Lanes are serialized by bank conflicts of their words in shared memory, and also of their words in global
    memory. Neither kind of word is shared. Lanes that conflict in both wait once.

    Args:
        addresses: in shared memory, shape (warps, lanes).
        size: bytes per lane.
        mask: lanes that take part.
        origins: in global memory; negative for lanes that write zeros.
    """
    found = _copied(addresses, size, mask, origins)
    return _with_ideal(found, mask, size)


def _copied(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Wavefronts of each warp's copy through L1."""
    together = served_together(size)
    into = _all_words(np.where(mask, addresses >> 2, -1).reshape(-1, together), size)
    out = _all_words(np.where(mask & (origins >= 0), origins >> 2, -1).reshape(-1, together), size)
    rows, _ = np.nonzero(out >= 0)
    pairs = np.bincount(
        (rows * BANKS + out[out >= 0] % BANKS) * BANKS + into[out >= 0] % BANKS,
        minlength=len(out) * BANKS * BANKS,
    ).reshape(len(out), BANKS, BANKS)  # lanes by source bank and target bank
    waits = (pairs.sum(axis=2) - pairs.max(axis=2)).max(axis=1)
    found: NDArray[np.int64] = (_busiest(into) + waits).reshape(len(addresses), -1).sum(axis=1)
    return found


def count_copied_past(
    addresses: NDArray[np.int64], size: int, mask: NDArray[np.bool_], origins: NDArray[np.int64]
) -> tuple[int, int]:
    """The same for copies that bypass L1, which write in the order in which data arrives from L2.

    Lanes that are served together share a wavefront if they read one line, write one row of banks at the same
    distance (modulo 64 bytes), and fill the same half of a sector. Two neighbours that fill a sector count as
    one. If any lane of a warp writes zeros, all its lanes additionally copy through L1.
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

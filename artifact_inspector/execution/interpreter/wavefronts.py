"""Costs of memory accesses on NVIDIA GPUs: sectors of global memory, wavefronts of shared memory.

The counts are those of ncu: 32-byte sectors for each request of a warp, and wavefronts over 32 banks of 4 bytes.

**Source** Nsight Compute documentation, "Memory Tables" (sectors, requests, wavefronts, bank conflicts). The rest was
measured with ncu on an H200, see docs/prediction.md.
"""

from __future__ import annotations

import numpy as np

from artifact_inspector.execution.interpreter.affine import BoolArray, IntArray
from artifact_inspector.execution.interpreter.footprints import SECTOR

BANKS = 32
"""Shared memory banks, 4 bytes each."""
LINE = 4 * BANKS
"""Bytes of an L1 cache line, and of one word of every bank."""
_NO_SECTOR = np.iinfo(np.int64).max


def count_sectors(addresses: IntArray, mask: BoolArray | None, unit_bytes: int = SECTOR) -> int:
    """Distinct sectors, or lines, of each row of lanes, totalled.

    Args:
        addresses: shape (warps, lanes); an access does not cross a sector.
        mask: lanes that take part; None means all.
        unit_bytes: bytes of a sector or a line.
    """
    sectors = addresses >> (unit_bytes.bit_length() - 1)
    if mask is None:
        steps = sectors[:, 1:] - sectors[:, :-1]
        if (steps >= 0).all():
            return len(sectors) + int(np.count_nonzero(steps))
    else:
        sectors = np.where(mask, sectors, _NO_SECTOR)
    sectors = np.sort(sectors, axis=1)
    sector_count = int(np.count_nonzero(sectors[:, 1:] != sectors[:, :-1])) + len(sectors)
    return sector_count if mask is None else sector_count - int(np.count_nonzero(sectors[:, -1] == _NO_SECTOR))


def lanes_served_together(size: int) -> int:
    """Lanes of a warp whose shared memory accesses of some size are served together.

    Measured with ncu on an H200: 32 lanes up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes.
    """
    return 32 * 4 // max(4, min(size, 16))


def count_wavefronts(addresses: IntArray, size: int, mask: BoolArray | None, *, loads: bool = False) -> tuple[int, int]:
    """Wavefronts of accesses to shared memory, and how many there would be without bank conflicts.

    A load of 8 or 16 bytes serves twice as many lanes at once if neighbours request the same words and no
    bank has a conflict. Neighbours are lanes whose numbers differ by 1, or by 2, among those that take part.

    Args:
        addresses: shape (rows, lanes); a row is a whole warp, or the lanes that an opcode serves at a time.
        size: bytes per lane.
        mask: lanes that take part; None means all.
    """
    group_lanes = min(lanes_served_together(size), addresses.shape[1])
    word_addresses = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    wavefronts = _group_wavefronts(word_addresses.reshape(-1, group_lanes), size)
    if loads and addresses.shape[1] >= 2 * group_lanes:
        wavefronts = wavefronts.reshape(-1, 2).sum(axis=1)
        wavefronts[_served_at_once(word_addresses.reshape(-1, 2 * group_lanes), size)] = 1
    return _total_and_ideal(wavefronts.reshape(len(addresses), -1).sum(axis=1), word_addresses >= 0, size)


def _total_and_ideal(wavefronts: IntArray, active: BoolArray, size: int) -> tuple[int, int]:
    """Wavefronts of all rows, and the ideal number: the words of the lanes divided by the banks, if fewer."""
    filled = -(-active.sum(axis=1) * size // (4 * BANKS))
    return int(wavefronts.sum()), int(np.minimum(wavefronts, filled).sum())


def lane_groups_served(addresses: IntArray, size: int, mask: BoolArray, *, is_load: bool) -> list[range]:
    """Lanes of one row that are served together, by the rule of `count_wavefronts`."""
    lanes = len(addresses)
    group_lanes = min(lanes_served_together(size), lanes)
    if not is_load or lanes < 2 * group_lanes:
        return [range(first, first + group_lanes) for first in range(0, lanes, group_lanes)]
    groups: list[range] = []
    at_once = _served_at_once(np.where(mask, addresses >> 2, -1).reshape(-1, 2 * group_lanes), size)
    for first, is_joined in zip(range(0, lanes, 2 * group_lanes), at_once, strict=True):
        middle, last = first + group_lanes, first + 2 * group_lanes
        groups += [range(first, last)] if is_joined else [range(first, middle), range(middle, last)]
    return groups


def _served_at_once(word_addresses: IntArray, size: int) -> BoolArray:
    """Rows, of twice as many lanes as are served together, that one wavefront serves nevertheless."""
    is_joined = _neighbours_agree(word_addresses, 1) | _neighbours_agree(word_addresses, 2)
    if is_joined.any():
        is_joined[is_joined] = _group_wavefronts(word_addresses[is_joined], size) == 1
    return is_joined


def _neighbours_agree(word_addresses: IntArray, lane_distance: int) -> BoolArray:
    """Rows in which each lane and the one whose number differs by a bit want the same, or one is inactive."""
    neighbour_words = word_addresses[:, np.arange(word_addresses.shape[1]) ^ lane_distance]
    agrees: BoolArray = ((word_addresses == neighbour_words) | (word_addresses < 0) | (neighbour_words < 0)).all(axis=1)
    return agrees


def _all_words(first_words: IntArray, size: int) -> IntArray:
    """All words of lanes from their first words; negative for lanes that do not take part."""
    words_per_lane = max(size // 4, 1)
    if words_per_lane == 1:
        return first_words
    return np.where(first_words[:, :, None] < 0, -1, first_words[:, :, None] + np.arange(words_per_lane)).reshape(
        len(first_words), -1
    )


def _group_wavefronts(word_addresses: IntArray, size: int) -> IntArray:
    """Wavefronts of each row of lanes that are served together: a bank serves its distinct words in turn."""
    word_addresses = np.sort(_all_words(word_addresses, size), axis=1)
    is_distinct = word_addresses >= 0
    is_distinct[:, 1:] &= word_addresses[:, 1:] != word_addresses[:, :-1]
    return _busiest_bank_words(np.where(is_distinct, word_addresses, -1))


def _busiest_bank_words(word_addresses: IntArray) -> IntArray:
    """Words of the busiest bank of each row."""
    rows, _ = np.nonzero(word_addresses >= 0)
    banks = np.bincount(
        rows * BANKS + word_addresses[word_addresses >= 0] % BANKS, minlength=len(word_addresses) * BANKS
    )
    busiest: IntArray = banks.reshape(-1, BANKS).max(axis=1)
    return busiest


def count_atomics(addresses: IntArray, size: int, mask: BoolArray | None, operands: int = 1) -> tuple[int, int]:
    """Wavefronts of atomics on shared memory, which are serialized by bank and by address.

    Args:
        addresses: shape (warps, lanes).
        size: bytes per lane.
        mask: lanes that take part; None means all.
        operands: operands per lane; two for compare-and-swap.
    """
    word_addresses = addresses >> 2 if mask is None else np.where(mask, addresses >> 2, -1)
    wavefronts, ideal = _total_and_ideal(
        _busiest_bank_words(_all_words(word_addresses, size)), word_addresses >= 0, size
    )
    return operands * wavefronts, operands * ideal


def count_copy_wavefronts(
    addresses: IntArray, size: int, mask: BoolArray, source_addresses: IntArray
) -> tuple[int, int]:
    """Wavefronts of asynchronous copies through L1, and how many there would be without conflicts.

    Lanes are serialized by bank conflicts of their words in shared memory, and also of their words in global
    memory. Neither kind of word is shared. Lanes that conflict in both wait once.

    Args:
        addresses: in shared memory, shape (warps, lanes).
        size: bytes per lane.
        source_addresses: in global memory; negative for lanes that write zeros.
    """
    return _total_and_ideal(_copy_wavefronts(addresses, size, mask, source_addresses), mask, size)


def _copy_wavefronts(addresses: IntArray, size: int, mask: BoolArray, source_addresses: IntArray) -> IntArray:
    """Wavefronts of each warp's copy through L1."""
    group_lanes = lanes_served_together(size)
    target_words = _all_words(np.where(mask, addresses >> 2, -1).reshape(-1, group_lanes), size)
    source_words = _all_words(
        np.where(mask & (source_addresses >= 0), source_addresses >> 2, -1).reshape(-1, group_lanes), size
    )
    rows, _ = np.nonzero(source_words >= 0)
    pairs = np.bincount(
        (rows * BANKS + source_words[source_words >= 0] % BANKS) * BANKS + target_words[source_words >= 0] % BANKS,
        minlength=len(source_words) * BANKS * BANKS,
    ).reshape(len(source_words), BANKS, BANKS)  # lanes by source bank and target bank
    waits = (pairs.sum(axis=2) - pairs.max(axis=2)).max(axis=1)
    wavefronts: IntArray = (_busiest_bank_words(target_words) + waits).reshape(len(addresses), -1).sum(axis=1)
    return wavefronts


def count_l1_bypass_wavefronts(
    addresses: IntArray, size: int, mask: BoolArray, source_addresses: IntArray
) -> tuple[int, int]:
    """The same for copies that bypass L1, which write in the order in which data arrives from L2.

    Lanes that are served together share a wavefront if they read one line, write one row of banks at the same
    distance (modulo 64 bytes), and fill the same half of a sector. Two neighbours that fill a sector count as
    one. If any lane of a warp writes zeros, all its lanes additionally copy through L1.
    """
    group_lanes = lanes_served_together(size)
    reads_memory = mask & (source_addresses >= 0)
    has_zeros = (mask & ~reads_memory).any(axis=1)
    wavefronts = ideal = 0
    if has_zeros.any():
        wavefronts, ideal = count_copy_wavefronts(
            addresses[has_zeros], size, mask[has_zeros], source_addresses[has_zeros]
        )
    ideal += int((-(-reads_memory.sum(axis=1) * size // (4 * BANKS))).sum())
    neighbour = np.arange(addresses.shape[1]) ^ 1
    fills_sector = reads_memory & reads_memory[:, neighbour]
    for sectors in (source_addresses // SECTOR, addresses // SECTOR):
        fills_sector &= sectors == sectors[:, neighbour]
    unit_bytes = np.where(fills_sector, SECTOR, size)
    distance = (addresses // unit_bytes - source_addresses // unit_bytes) * unit_bytes % 64
    sector_half = np.where(fills_sector, 2, source_addresses // size % 2)
    write_keys = ((source_addresses // LINE * (1 << 20) + addresses // LINE) * 64 + distance) * 4 + sector_half
    write_keys = np.sort(np.where(reads_memory, write_keys, -1).reshape(-1, group_lanes), axis=1)
    wavefronts += int(np.count_nonzero((write_keys[:, 1:] != write_keys[:, :-1]) & (write_keys[:, 1:] >= 0)))
    wavefronts += int(np.count_nonzero(write_keys[:, 0] >= 0))
    return wavefronts, ideal

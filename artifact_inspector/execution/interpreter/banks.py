"""One warp's access to shared memory, lane by lane: its banks, and the wavefront that serves each word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artifact_inspector.execution.interpreter.affine import BoolArray, IntArray
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.interpreter.wavefronts import (
    BANKS,
    count_atomics,
    count_wavefronts,
    lane_groups_served,
)

__all__ = ["BANKS", "WordRequest", "assign_wavefronts", "count_warp_wavefronts", "find_lane_groups"]


def count_warp_wavefronts(access: WarpAccess) -> tuple[int, int]:
    """Wavefronts of an access, and how many there would be without bank conflicts."""
    addresses, mask = _lane_rows(access)
    if access.operands:
        return count_atomics(addresses, access.size, mask, access.operands)
    return count_wavefronts(addresses, access.size, mask, loads=access.is_load)


def find_lane_groups(access: WarpAccess) -> tuple[range, ...]:
    """Lanes that are served together, in order."""
    if access.operands:
        return (range(len(access.addresses)),)
    return tuple(
        range(row * access.lanes_per_group + group.start, row * access.lanes_per_group + group.stop)
        for row, (addresses, mask) in enumerate(zip(*_lane_rows(access), strict=True))
        for group in lane_groups_served(addresses, access.size, mask, is_load=access.is_load)
    )


def _lane_rows(access: WarpAccess) -> tuple[IntArray, BoolArray]:
    """Addresses and active lanes, in rows of lanes that are served together."""
    addresses = np.array([-1 if at is None else at for at in access.addresses], np.int64)
    addresses = addresses.reshape(-1, access.lanes_per_group)
    return addresses, addresses >= 0


class WordRequest(NamedTuple):
    """A 4-byte word that a lane requests, and the wavefront that serves it."""

    lane: int
    word_address: int
    wavefront: int
    """Number from 0; an atomic with several operands repeats it for each."""

    @property
    def bank(self) -> int:
        """The bank of the word."""
        return self.word_address % BANKS


def assign_wavefronts(access: WarpAccess) -> tuple[WordRequest, ...]:
    """The wavefront that serves each word of each lane; a bank serves its distinct words one after the other.

    The number of wavefronts is that of the hardware. The order of a bank's words is not documented; here the
    word of the lowest lane comes first.
    """
    requests: list[WordRequest] = []
    wavefronts_before = 0
    for group in find_lane_groups(access):
        words_by_bank: dict[int, list[int]] = {}
        for lane in group:
            address = access.addresses[lane]
            if address is None:
                continue
            for word_address in range(address >> 2, (address >> 2) + max(access.size // 4, 1)):
                bank_words = words_by_bank.setdefault(word_address % BANKS, [])
                if access.operands or word_address not in bank_words:
                    bank_words.append(word_address)
                position = len(bank_words) - 1 if access.operands else bank_words.index(word_address)
                requests.append(WordRequest(lane, word_address, wavefronts_before + position))
        wavefronts_before += max(map(len, words_by_bank.values()), default=0)
    return tuple(requests)

"""One warp's access to shared memory, lane by lane: its banks, and the wavefront that serves each word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.interpreter.wavefronts import (
    BANKS,
    count_atomics,
    count_wavefronts,
    groups_served,
)

__all__ = ["BANKS", "Turn", "count_access", "find_groups", "take_turns"]


def count_access(access: WarpAccess) -> tuple[int, int]:
    """Wavefronts of an access, and how many there would be without bank conflicts."""
    addresses, mask = _lanes(access)
    if access.operands:
        return count_atomics(addresses, access.size, mask, access.operands)
    return count_wavefronts(addresses, access.size, mask, loads=access.loads)


def find_groups(access: WarpAccess) -> tuple[range, ...]:
    """Lanes that are served together, in order."""
    if access.operands:
        return (range(len(access.addresses)),)
    return tuple(
        range(row * access.served + group.start, row * access.served + group.stop)
        for row, (addresses, mask) in enumerate(zip(*_lanes(access), strict=True))
        for group in groups_served(addresses, access.size, mask, loads=access.loads)
    )


def _lanes(access: WarpAccess) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Addresses and active lanes, in rows of lanes that are served together."""
    held = np.array([-1 if at is None else at for at in access.addresses], np.int64)
    held = held.reshape(-1, access.served)
    return held, held >= 0


class Turn(NamedTuple):
    """A 4-byte word that a lane requests, and the wavefront that serves it."""

    lane: int
    word: int
    wavefront: int
    """Number from 0; an atomic with several operands repeats it for each."""

    @property
    def bank(self) -> int:
        """The bank of the word."""
        return self.word % BANKS


def take_turns(access: WarpAccess) -> tuple[Turn, ...]:
    """The wavefront that serves each word of each lane; a bank serves its distinct words one after the other.

    The number of wavefronts is that of the hardware. The order of a bank's words is not documented; here the
    word of the lowest lane comes first.
    """
    found: list[Turn] = []
    before = 0
    for group in find_groups(access):
        asked: dict[int, list[int]] = {}
        for lane in group:
            address = access.addresses[lane]
            if address is None:
                continue
            for word in range(address >> 2, (address >> 2) + max(access.size // 4, 1)):
                words = asked.setdefault(word % BANKS, [])
                if access.operands or word not in words:
                    words.append(word)
                place = len(words) - 1 if access.operands else words.index(word)
                found.append(Turn(lane, word, before + place))
        before += max(map(len, asked.values()), default=0)
    return tuple(found)

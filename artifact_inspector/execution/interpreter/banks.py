"""One warp's access to shared memory, lane by lane: which banks it asks, and which wavefront serves what."""

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
    """Lanes that are served together, in their order."""
    if access.operands:
        return (range(len(access.addresses)),)
    return tuple(
        range(row * access.served + group.start, row * access.served + group.stop)
        for row, (addresses, mask) in enumerate(zip(*_lanes(access), strict=True))
        for group in groups_served(addresses, access.size, mask, loads=access.loads)
    )


def _lanes(access: WarpAccess) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Addresses and which lanes take part, in rows of what is served at a time."""
    held = np.array([-1 if at is None else at for at in access.addresses], np.int64)
    held = held.reshape(-1, access.served)
    return held, held >= 0


class Turn(NamedTuple):
    """A word of 4 bytes that a lane asks for, and when it has it."""

    lane: int
    word: int
    wavefront: int
    """From 0; of an atomic with several operands, for each of them."""

    @property
    def bank(self) -> int:
        """Where the word is."""
        return self.word % BANKS


def take_turns(access: WarpAccess) -> tuple[Turn, ...]:
    """Which wavefront serves which word of which lane: a bank serves its distinct words in turn.

    How many there are is the hardware's; which of a bank's words comes first is not known, and is that of
    the lowest lane here.
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

"""One warp's access to shared memory, lane by lane: which banks it asks, and which wavefront serves what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.wavefronts import BANKS, count_atomics, count_wavefronts, groups_served

__all__ = ["BANKS", "Turn", "WarpAccess", "take_turns"]


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """The addresses of a warp's lanes in one access."""

    addresses: tuple[int | None, ...]
    """Of each lane in bytes; None where it takes no part."""
    size: int
    """Bytes of each lane."""
    cta: int
    warp: int
    """Of the CTA."""
    served: int = 32
    """Lanes that the opcode serves at a time: 8 for matrices, a row of 16 bytes each."""
    loads: bool = False
    """It is a load, whose lanes may share what they read."""
    operands: int = 0
    """Of an atomic, whose lanes share nothing; 0 for any other access."""

    def count(self) -> tuple[int, int]:
        """Wavefronts of this access, and how many there would be without bank conflicts."""
        addresses, mask = self.lanes
        if self.operands:
            return count_atomics(addresses, self.size, mask, self.operands)
        return count_wavefronts(addresses, self.size, mask, loads=self.loads)

    @property
    def lanes(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Addresses and which lanes take part, in rows of what is served at a time."""
        held = np.array([-1 if at is None else at for at in self.addresses], np.int64)
        held = held.reshape(-1, self.served)
        return held, held >= 0

    def groups(self) -> tuple[range, ...]:
        """Lanes that are served together, in their order."""
        if self.operands:
            return (range(len(self.addresses)),)
        return tuple(
            range(row * self.served + group.start, row * self.served + group.stop)
            for row, (addresses, mask) in enumerate(zip(*self.lanes, strict=True))
            for group in groups_served(addresses, self.size, mask, loads=self.loads)
        )


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
    for group in access.groups():
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

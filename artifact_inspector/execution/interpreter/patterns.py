"""What accesses were found to cost, kept: the trips of a loop, and CTAs, ask for the same again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_LANES = 1 << 11
"""Lanes of an access that is kept; of larger ones there are few."""
MOST_KEPT = 1 << 12

_kept: dict[Any, tuple[int, int]] = {}


def recall(
    count: Callable[..., tuple[int, int]],
    addresses: NDArray[np.int64],
    size: int,
    *more: NDArray[Any] | int | None,
    within: int,
    **how: bool,
) -> tuple[int, int]:
    """What a function of an access's addresses counts, which is a pure one.

    Args:
        count: it depends on addresses only by how they lie in pieces of some bytes, and to each other.
        addresses: of all lanes.
        size: bytes of each lane.
        more: what the function takes behind that.
        within: bytes of these pieces.
        how: what it takes by name.
    """
    if addresses.size > MOST_LANES:
        return count(addresses, size, *more, **how)
    apart = addresses - (addresses.flat[0] & -within)
    held = tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in more)
    key = (count, addresses.shape, apart.tobytes(), size, held, *how.values())
    found = _kept.get(key)
    if found is None:
        if len(_kept) >= MOST_KEPT:
            _kept.clear()
        found = _kept[key] = count(addresses, size, *more, **how)
    return found

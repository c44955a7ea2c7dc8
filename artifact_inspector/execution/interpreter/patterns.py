"""A cache of access costs: loop iterations and CTAs repeat the same access patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_LANES = 1 << 11
"""Largest access, in lanes, that is cached; larger ones are rare."""
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
    """The cached result of a cost function of an access's addresses.

    Args:
        count: a pure function; it depends on addresses modulo `within` and on their differences only.
        addresses: of all lanes.
        size: bytes per lane.
        more: further positional arguments of the function.
        within: modulus in bytes.
        how: keyword arguments of the function.
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

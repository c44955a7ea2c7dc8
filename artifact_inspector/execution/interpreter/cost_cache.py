"""A cache of access costs: loop iterations and CTAs repeat the same access patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import IntArray

MOST_LANES = 1 << 11
"""Largest access, in lanes, that is cached; larger ones are rare."""
MOST_ENTRIES = 1 << 12

_cached_costs: dict[Any, tuple[int, int]] = {}


def cached_cost(
    cost_function: Callable[..., tuple[int, int]],
    addresses: IntArray,
    size: int,
    *further_arguments: NDArray[Any] | int | None,
    modulus: int,
    **options: bool,
) -> tuple[int, int]:
    """The cached result of a cost function of an access's addresses.

    Args:
        cost_function: a pure function; it depends on addresses modulo `modulus` and on their differences only.
        addresses: of all lanes.
        size: bytes per lane.
        further_arguments: further positional arguments of the function.
        modulus: modulus in bytes.
        options: keyword arguments of the function.
    """
    if addresses.size > MOST_LANES:
        return cost_function(addresses, size, *further_arguments, **options)
    relative_addresses = addresses - (addresses.flat[0] & -modulus)
    key_arguments = tuple(
        argument.tobytes() if isinstance(argument, np.ndarray) else argument for argument in further_arguments
    )
    key = (cost_function, addresses.shape, relative_addresses.tobytes(), size, key_arguments, *options.values())
    cost = _cached_costs.get(key)
    if cost is None:
        if len(_cached_costs) >= MOST_ENTRIES:
            _cached_costs.clear()
        cost = _cached_costs[key] = cost_function(addresses, size, *further_arguments, **options)
    return cost

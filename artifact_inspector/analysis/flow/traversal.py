"""Searches and groupings that the analyses share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def reachable(start: Iterable[Key], neighbours: Callable[[Key], Iterable[Key]]) -> dict[Key, None]:
    """The nodes that can be reached from some nodes, themselves included, in the order of the search, depth first.

    Example:
        >>> list(reachable([1], {1: [3, 2], 2: [1], 3: [4], 4: []}.__getitem__))
        [1, 2, 3, 4]
    """
    pending = list(dict.fromkeys(start))
    discovered, visited = set(pending), dict[Key, None]()
    while pending:
        current = pending.pop()
        visited[current] = None
        for node in neighbours(current):
            if node not in discovered:
                discovered.add(node)
                pending.append(node)
    return visited


def group_by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, in their order.

    Example:
        >>> group_by_key([("a", 1), ("b", 2), ("a", 3)])
        {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def set_bit_indices(mask: int) -> Iterator[int]:
    """Indices of the bits that are set, lowest first."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def range_of(numbers: Iterable[int]) -> int | tuple[int, int] | None:
    """The least and the most of some numbers, or the only one; None without any."""
    ordered = sorted(set(numbers))
    return (ordered[0], ordered[-1]) if len(ordered) > 1 else next(iter(ordered), None)

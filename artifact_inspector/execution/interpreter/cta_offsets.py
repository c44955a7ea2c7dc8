"""Offsets of CTAs from each other, which many accesses share: what depends on them only is computed once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from artifact_inspector.execution.interpreter.affine import IntArray

_MOST_KEPT = 128
"""Arrays of offsets that are kept."""


class OffsetFacts:
    """What all accesses at some offsets share."""

    def __init__(self, offsets: IntArray) -> None:
        self.offsets = offsets
        self.low, self.high = int(offsets.min()), int(offsets.max())
        self.bits = int(np.bitwise_or.reduce(offsets - offsets[0]))
        """Every bit that is set in a difference to the first offset."""
        self.classes: dict[int, list[tuple[int, int]]] = {}
        """As of `find_offset_classes`, by modulus."""

    @cached_property
    def groups(self) -> tuple[IntArray, IntArray, IntArray]:
        """The distinct offsets in order, the rows in their order, and the first row of each in that order."""
        order = np.argsort(self.offsets, kind="stable")
        ordered = self.offsets[order]
        firsts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return ordered[firsts], order, np.append(firsts, len(order))


_facts: dict[int, OffsetFacts] = {}
_shared: dict[tuple[int, int, int], IntArray] = {}


def offset_facts(offsets: IntArray) -> OffsetFacts:
    """The facts of an array of offsets, which must not change."""
    facts = _facts.get(id(offsets))
    if facts is None or facts.offsets is not offsets:
        if len(_facts) >= _MOST_KEPT:
            _facts.clear()
        facts = _facts[id(offsets)] = OffsetFacts(offsets)
    return facts


def share_offsets(starts: IntArray) -> IntArray:
    """The offsets of some numbers from the first one, as one object for equal offsets."""
    offsets = starts - starts[0]
    key = len(offsets), int(offsets[-1]), int(offsets.sum())
    shared = _shared.get(key)
    if shared is None or not np.array_equal(shared, offsets):
        if len(_shared) >= _MOST_KEPT:
            _shared.clear()
        shared = _shared[key] = offsets
    return shared

"""Alignment of two signatures: runs of the same event in one column."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

MOST_RUNS = 400
"""Longer signatures are not aligned: the work grows quadratically, and the result would be unreadable."""


class SignatureColumn(NamedTuple):
    """A run of either signature; empty if that side has none there."""

    left: str
    right: str


def align(left: str, right: str) -> tuple[SignatureColumn, ...] | None:
    """The runs of two signatures, runs of the same letter paired; None if they are too long.

    Example:
        >>> [tuple(column) for column in align("L2 F2 L2", "L4 X1 F2") or ()]
        [('L2', 'L4'), ('', 'X1'), ('F2', 'F2'), ('L2', '')]
    """
    ours, theirs = left.split(), right.split()
    if len(ours) > MOST_RUNS or len(theirs) > MOST_RUNS:
        return None
    # difflib prefers matches of its first argument; sorting the arguments makes the result symmetric
    swapped = (len(ours), ours) > (len(theirs), theirs)
    first, second = (theirs, ours) if swapped else (ours, theirs)
    columns: list[SignatureColumn] = []
    matcher = SequenceMatcher(None, [run[0] for run in first], [run[0] for run in second], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            columns += [
                SignatureColumn(our_run, their_run) for our_run, their_run in zip(first[a:b], second[c:d], strict=True)
            ]
        else:
            columns += [SignatureColumn(our_run, "") for our_run in first[a:b]]
            columns += [SignatureColumn("", their_run) for their_run in second[c:d]]
    return tuple(SignatureColumn(c.right, c.left) for c in columns) if swapped else tuple(columns)

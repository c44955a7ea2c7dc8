"""A word of a fixed list: what an enumeration's member is in documents and in print."""

from __future__ import annotations

from enum import Enum


class Word(str, Enum):
    """An enumeration whose members are the words that users read.

    A member equals its word, hashes and prints as it, and is written to JSON as it, so that a
    document or an option can be held against it. Code compares members.

    Example:
        >>> from artifact_inspector.model import Verdict
        >>> Verdict("serial") is Verdict.SERIAL, f"{Verdict.SERIAL}"
        (True, 'serial')
    """

    __str__ = str.__str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

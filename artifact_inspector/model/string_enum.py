"""Enumerations whose members are strings."""

from __future__ import annotations

from enum import Enum


class StringEnum(str, Enum):
    """An enumeration whose members are strings that are printed.

    A member equals its string, hashes and prints like it, and is written to JSON as it, so documents and
    options can be compared with it. Code compares members.

    Example:
        >>> from artifact_inspector.model import OrderVerdict
        >>> OrderVerdict("serial") is OrderVerdict.SERIAL, f"{OrderVerdict.SERIAL}"
        (True, 'serial')
    """

    __str__ = str.__str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

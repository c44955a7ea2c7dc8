"""Records whose fields are found when they are first asked for, and kept from then on.

A record is a frozen dataclass with slots. One that was made with all its values is just that; one that was
made by `on_demand` has slots without a value, and asks for each when it is read. What compares, copies or
stores a record reads all its fields, so a record is the same whichever way it was made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

Ask = Callable[[str], Any]
"""Name of a field → its value."""
Derived = TypeVar("Derived")


class Record:
    """A frozen dataclass whose fields may be asked for."""

    __slots__ = ("_ask", "_derived")
    _ask: Ask
    _derived: dict[str, Any]
    CHANGING: ClassVar[frozenset[str]] = frozenset()
    """Fields that grow while others are asked for: never kept."""

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """The value of a slot that has none yet."""
            if name == "_ask" or name not in self.__dataclass_fields__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            try:
                ask = self._ask
            except AttributeError:
                raise AttributeError(f"{type(self).__name__}.{name} was not given") from None
            value = ask(name)
            if name not in self.CHANGING:
                object.__setattr__(self, name, value)
            return value

    def derive(self, name: str, find: Callable[[], Derived]) -> Derived:
        """What follows from the fields and is no field: found once."""
        try:
            derived = self._derived
        except AttributeError:
            derived = {}
            object.__setattr__(self, "_derived", derived)
        if name not in derived:
            derived[name] = find()
        return derived[name]  # type: ignore[no-any-return]


Kind = TypeVar("Kind", bound=Record)


def on_demand(kind: type[Kind], ask: Ask, /, **given: object) -> Kind:
    """A record with some values, which asks for the others."""
    made = kind.__new__(kind)
    for name, value in given.items():
        object.__setattr__(made, name, value)
    object.__setattr__(made, "_ask", ask)
    return made


def known(record: Record) -> dict[str, Any]:
    """The fields that have a value, without asking for more."""
    found = {}
    for field in fields(record):  # type: ignore[arg-type]
        try:
            found[field.name] = object.__getattribute__(record, field.name)
        except AttributeError:
            continue
    return found


def with_fields(record: Kind, **changed: object) -> Kind:
    """The record with other values; what was not asked for yet is still to be asked for."""
    ask = getattr(record, "_ask", None)
    if ask is None:
        return type(record)(**{**known(record), **changed})
    return on_demand(type(record), ask, **{**known(record), **changed})

"""Dataclasses whose methods are not compiled before they are called.

A list defines 126. To compile six methods of each took 6 % of a list of 28 kernels, and a fifth of a second list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import asdict, field, fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["asdict", "dataclass", "field", "fields", "replace"]

_copies: list[type] = []  # classes that were made for their `__init__`: as garbage, each would be a cycle

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, kw_only: bool = False) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, with the same fields and methods."""

        def define(kind: type) -> type:
            inherits = frozen and dataclasses.is_dataclass(kind)  # and must be as frozen as what it inherits from
            options = {"slots": slots, "kw_only": kw_only, "frozen": inherits}
            return _add_methods(dataclasses.dataclass(init=False, repr=False, eq=False, **options)(kind), frozen)

        return define


def _add_methods(kind: Any, is_frozen: bool) -> Any:
    def __init__(self: Any, *values: object, **named: object) -> None:  # noqa: N807
        copy: Any = type(kind.__name__, (kind,), {"__slots__": (), "__doc__": kind.__doc__})
        _copies.append(copy)
        kind.__init__ = dataclasses.dataclass(frozen=is_frozen, repr=False, eq=False)(copy).__init__
        kind.__init__(self, *values, **named)

    def values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
        return attrgetter(*names) if len(names) > 1 else lambda record: tuple([getattr(record, x) for x in names])

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    names, shown = [x.name for x in fields(kind)], [x.name for x in fields(kind) if x.repr]
    compared = values_of([x.name for x in fields(kind) if x.compare])
    hashed = values_of([x.name for x in fields(kind) if (x.compare if x.hash is None else x.hash)])
    methods: dict[str, Any] = {
        "__init__": __init__,
        "__repr__": lambda self: f"{kind.__qualname__}({', '.join(f'{x}={getattr(self, x)!r}' for x in shown)})",
        "__eq__": lambda self, other: (
            compared(self) == compared(other) if type(other) is type(self) else NotImplemented
        ),
        "__hash__": (lambda self: hash(hashed(self))) if is_frozen else None,
    }
    if is_frozen:
        kind.__dataclass_params__.frozen = True
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if "__slots__" in kind.__dict__:
            methods |= {"__getstate__": lambda self: [getattr(self, x) for x in names], "__setstate__": __setstate__}
    for name, method in methods.items():
        if kind.__dict__.get(name) is None:
            setattr(kind, name, method)
    return kind


def _refuse(record: Any, name: str, _value: object = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r} of {type(record).__name__}")

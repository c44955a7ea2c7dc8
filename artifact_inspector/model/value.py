"""`dataclass`, as the standard library has it, made in an eighth of the time.

The library writes the source of six methods for each class and compiles it, which takes a third of a
millisecond: a tenth of a list of 28 kernels, a quarter of a second one. Here what compares, hashes, prints
and refuses is shared by all classes, and `__init__` is compiled when the first value is made.

The fields are the library's own: `fields`, `replace` and `asdict` take these classes as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True, kw_only=False):
        """A decorator of the library's name and options, without those that nothing here asks for."""

        def made(plain):
            if any(dataclasses.is_dataclass(base) for base in plain.__bases__):
                return dataclasses.dataclass(
                    plain, frozen=frozen, slots=slots, eq=eq, repr=repr, kw_only=kw_only
                )
            hashes = "__hash__" in vars(plain) and vars(plain)["__hash__"] is not None
            printed = not repr or "__repr__" in vars(plain)
            plain.__doc__ = plain.__doc__ or plain.__name__  # or the library would work out a signature
            kind = dataclasses.dataclass(
                plain, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
            )
            kind.__dataclass_params__.frozen, kind.__dataclass_params__.eq = frozen, eq
            kind.__init__ = _first_init(kind)
            if not printed:
                kind.__repr__ = _repr
            if eq:
                _compare(kind, hashes=hashes, frozen=frozen)
            if frozen:
                _freeze(kind, slots=slots)
            return kind

        return made if cls is None else made(cls)


def _first_init(kind: Any) -> Callable[..., None]:
    """An `__init__` that gives way to the real one, which is compiled then."""

    def __init__(self: Any, *given: Any, **named: Any) -> None:  # noqa: N807
        if kind.__init__ is __init__:
            kind.__init__ = _init(kind)
        kind.__init__(self, *given, **named)

    return __init__


def _init(kind: Any) -> Callable[..., None]:
    """The function that takes the fields in their order and sets them."""
    space: dict[str, Any] = {"_new": dataclasses.MISSING}
    plain, named, body = ["self"], ["*"], ["pass"]
    for one in dataclasses.fields(kind):
        name, taken, value = one.name, one.name, one.name
        if one.default is not dataclasses.MISSING:
            default = f"_default_{name}"
            space[default] = one.default
            taken, value = f"{name}={default}", name if one.init else default
        elif one.default_factory is not dataclasses.MISSING:
            make = f"_make_{name}"
            space[make] = one.default_factory
            taken, value = (
                f"{name}=_new",
                f"{make}() if {name} is _new else {name}" if one.init else f"{make}()",
            )
        elif not one.init:
            continue
        if one.init:
            (named if one.kw_only else plain).append(taken)
        slot = getattr(kind, name, None)
        if isinstance(slot, MemberDescriptorType):
            space[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            space["_set"] = object.__setattr__
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    taken = ", ".join([*plain, *(named if len(named) > 1 else [])])
    exec(f"def __init__({taken}):\n " + "\n ".join(body), space)
    init: Callable[..., None] = space["__init__"]
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    return init


def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _compare(kind: Any, *, hashes: bool, frozen: bool) -> None:
    """Let values of a class be equal where their fields are; those that cannot be changed have a hash."""
    compared = [one.name for one in dataclasses.fields(kind) if one.compare]
    hashed = [one.name for one in dataclasses.fields(kind) if (one.compare if one.hash is None else one.hash)]
    told, key = _values(compared), _values(hashed)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return told(self) == told(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(key(self))

    if "__eq__" not in vars(kind):
        kind.__eq__ = __eq__
    if not hashes:
        kind.__hash__ = __hash__ if frozen else None


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives some attributes as a tuple, however many there are."""
    names = tuple(names)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _freeze(kind: Any, *, slots: bool) -> None:
    """Refuse changes to the fields of a class, and to whatever else its own values have."""
    names = [one.name for one in dataclasses.fields(kind)]

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    kind.__setattr__, kind.__delattr__ = __setattr__, __delattr__
    if slots:
        kind.__getstate__ = lambda self: [getattr(self, name) for name in names]
        kind.__setstate__ = lambda self, state: _restore(self, names, state)


def _restore(self: Any, names: Iterable[str], state: Iterable[Any]) -> None:
    for name, value in zip(names, state, strict=True):
        object.__setattr__(self, name, value)

"""`model.value.dataclass` makes what the library's own decorator makes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from artifact_inspector.model import value

DECORATORS = (dataclasses.dataclass, value.dataclass)


def made(decorator: Any, **options: Any) -> Any:
    class Sample:
        """Has each sort of field."""

        first: int
        unset: int = dataclasses.field(init=False, compare=False, repr=False)
        given: int = dataclasses.field(init=False, default=8)
        new: list[int] = dataclasses.field(init=False, default_factory=list, hash=False)
        second: str = "two"
        hidden: tuple[int, ...] = dataclasses.field(default=(), repr=False, compare=False)
        several: list[int] = dataclasses.field(default_factory=list, hash=False)

    return decorator(**options)(Sample)


OPTIONS = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"slots": True},
    {},
]


def outcome(find: Callable[[], Any]) -> Any:
    try:
        return find()
    except (AttributeError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS)
def test_it_makes_what_the_library_makes(options: dict[str, Any]) -> None:
    def seen(decorator: Any) -> list[Any]:
        kind = made(decorator, **options)
        one, same, other = kind(first=1), kind(first=1, hidden=(3,)), kind(first=1, several=[2])

        def change() -> None:
            one.first = 2

        def add() -> None:
            one.more = 2

        def delete() -> None:
            del same.second

        has_words = options.get("repr", True)
        hashed = options.get("eq", True)
        return [
            outcome(lambda: kind(7, "b", (1,), [2]).several),
            outcome(kind),
            outcome(lambda: kind(1, none=2)),
            (one == same, one == other, one == 1, one != other),
            outcome(lambda: hash(one) if hashed else None),
            repr(one) if has_words else None,
            outcome(change),
            outcome(add) is None,
            outcome(delete),
            [one.given, one.new, hasattr(one, "unset")],
            outcome(lambda: dataclasses.replace(one, first=5).first),
            copy.copy(Stored(1)).number,
            dataclasses.asdict(Stored(1)),
            [field.name for field in dataclasses.fields(kind)],
            kind.__dataclass_params__.frozen,
            kind.__match_args__,
            kind.__doc__,
        ]

    theirs, ours = map(seen, DECORATORS)
    assert ours == theirs


@value.dataclass(frozen=True, slots=True)
class Stored:
    number: int
    name: str = ""


def test_a_value_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Stored(3, "c"))) == Stored(3, "c")


def test_what_is_derived_from_a_value_is_one() -> None:
    @value.dataclass(frozen=True, slots=True)
    class Wider(Stored):
        more: int = 0

    assert Wider(1, "a", 2) == Wider(1, "a", 2) != Wider(1, "a", 3)
    assert Wider(1, "a", 2).number == 1


def test_what_the_class_says_itself_stays() -> None:
    @value.dataclass(frozen=True)
    class Own:
        number: int

        def __repr__(self) -> str:
            return "own"

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), hash(Own(1)), Own(1) == Own(1)) == ("own", 7, True)


def test_what_is_to_be_done_with_a_new_value_is_done() -> None:
    @value.dataclass(slots=True)
    class Doubled:
        number: int

        def __post_init__(self) -> None:
            self.number *= 2

    assert [Doubled(2).number, Doubled(3).number] == [4, 6]

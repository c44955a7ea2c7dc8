"""Dataclasses whose methods are made later are the same as those of the library."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from artifact_inspector.model import records


@records.dataclass(frozen=True, slots=True)
class Point:
    """A frozen value with a default, a factory and a field that is not hashed."""

    x: int
    y: str = "a"
    more: dict[str, int] = records.field(default_factory=dict, hash=False)


@records.dataclass(frozen=True, kw_only=True)
class Named:
    """Fields by name only, and a further one in a class that inherits from it."""

    name: str = "n"


@records.dataclass(frozen=True, kw_only=True)
class Longer(Named):
    """Inherits."""

    size: int


@records.dataclass(slots=True)
class Counted:
    """Can be changed."""

    count: int = 0


def test_a_record_is_made_compared_and_printed_as_a_dataclass() -> None:
    native = dataclasses.make_dataclass("Point", [("x", int), ("y", str, "a")], frozen=True)
    assert Point(1).__repr__() == "Point(x=1, y='a', more={})"
    assert repr(native(1)) == "Point(x=1, y='a')"
    assert Point(1) == Point(x=1, y="a")
    assert Point(1) != Point(2)
    assert Point(1) != native(1)
    assert hash(Point(1, more={"b": 2})) == hash(native(1))
    assert dataclasses.replace(Point(1), y="b").y == "b"
    assert Longer(size=3) == Longer(name="n", size=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Point()  # type: ignore[call-arg]


def test_a_frozen_record_cannot_be_changed_and_can_be_copied() -> None:
    for record, name in ((Point(1), "x"), (Longer(size=1), "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(record, name)
        assert copy.deepcopy(record) == record == pickle.loads(pickle.dumps(record))
    counted = Counted()
    counted.count += 1
    assert counted == Counted(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counted)

"""Facts as plain text, and back: the format of the index, and of messages between processes.

A dataclass or named tuple becomes the list of its values in the order of its fields, an enumeration its
value, a tuple a list, a mapping a list of pairs; numbers, texts and None stay. A text is decoded by the
types of the fields: it names no types, and nothing in it is executed.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Union

from artifact_inspector.model.location import SourceLine

FORMAT = "artifact-inspector facts 1"
"""First line of a text of sections; another form has another number."""
_PLAIN = frozenset((bool, int, float, str, type(None)))
_WRITER = json.JSONEncoder(separators=(",", ":"))


def encode(value: object) -> Any:
    """A fact, as `json` can write it."""
    kind: Any = type(value)
    return value if kind in _PLAIN else _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    if issubclass(kind, Enum):
        return attrgetter(_enum_key(kind))
    if issubclass(kind, SourceLine):
        return lambda value: list(value.chain)
    if issubclass(kind, str):
        return str
    if issubclass(kind, Mapping):
        return lambda value: [[encode(key), encode(item)] for key, item in value.items()]
    if hasattr(kind, "__dataclass_fields__"):
        names = [name for name, _ in _fields(kind)]
        get = attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]
        return lambda value: [x if type(x) in _PLAIN else encode(x) for x in get(value)]
    if issubclass(kind, tuple | list | frozenset):
        return lambda value: [x if type(x) in _PLAIN else encode(x) for x in value]
    raise TypeError(f"a fact of type {kind.__name__} has no plain form")


def decode(kind: Any, plain: Any) -> Any:
    """The fact of a type that a plain value stands for.

    Raises:
        TypeError, ValueError: it stands for none.
    """
    return _decoder(kind)(plain)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (Union, types.UnionType):
        return _of_union(arguments)
    if origin is tuple:
        return _of_tuple(arguments)
    if origin is not None and issubclass(origin, Mapping):
        key, value = map(_decoder, arguments)
        return lambda plain: {key(name): value(item) for name, item in plain}
    if kind in _PLAIN:
        return _of_plain((kind,))
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = {getattr(member, _enum_key(kind)): member for member in kind}
        return members.__getitem__
    if kind is SourceLine:
        return _source_line
    if isinstance(kind, type) and issubclass(kind, str):
        return kind
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        return _of_record(kind)
    raise TypeError(f"{kind} has no plain form")


def _enum_key(kind: type[Enum]) -> str:
    """What a member is written as: its value, unless that is no single text or number."""
    return "value" if all(type(member.value) in _PLAIN for member in kind) else "name"


def _of_union(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    structured = [argument for argument in arguments if argument not in _PLAIN]
    if not structured:
        return _of_plain(arguments)
    if len(structured) > 1:
        raise TypeError(f"the union of {structured} is ambiguous")
    only, plainly = _decoder(structured[0]), _of_plain(arguments)
    if isinstance(structured[0], type) and issubclass(structured[0], Enum | str) and structured[0] is not SourceLine:
        return lambda plain: None if plain is None else only(plain)
    return lambda plain: only(plain) if isinstance(plain, list) else plainly(plain)


def _source_line(plain: list[Any]) -> SourceLine:
    """A text that is a line of the user's code; only such a text is a list."""
    if {type(frame) for frame in plain} != {str} or not all(frame.rpartition(":")[2].isdecimal() for frame in plain):
        raise TypeError(f"{plain!r:.40} is no line of the program")
    return SourceLine(tuple(plain))


def _of_plain(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    kinds = {argument for argument in arguments if argument in _PLAIN} | ({int} if float in arguments else set())

    def decode_plain(plain: Any) -> Any:
        if type(plain) is list and str in kinds:
            return _source_line(plain)
        if type(plain) not in kinds:
            raise TypeError(f"{plain!r:.40} is none of {kinds}")
        return plain

    return decode_plain


def _of_tuple(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        decode_any = _decoder(arguments[0])
        return lambda plain: tuple(map(decode_any, plain))
    every = [_decoder(argument) for argument in arguments]
    return lambda plain: tuple(decode_item(argument) for decode_item, argument in zip(every, plain, strict=True))


def _of_record(kind: type) -> Callable[[Any], Any]:
    readers = [_decoder(of) for _, of in _fields(kind)]
    make: Any = kind
    return lambda plain: make(
        *(decode_field(field_value) for decode_field, field_value in zip(readers, plain, strict=True))
    )


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Names and types of what a record is made of."""
    hints = typing.get_type_hints(kind)
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    return tuple((name, hints[name]) for name in names)


def join(sections: Mapping[str, str]) -> bytes:
    """Some named texts of one line each as one."""
    lines = [FORMAT]
    for name, text in sections.items():
        lines += [name, text]
    return "\n".join(lines).encode(errors="surrogatepass")


def split(text: bytes) -> dict[str, str]:
    """The sections of a text; none where it is of another form."""
    try:
        head, *lines = text.decode(errors="surrogatepass").split("\n")
    except UnicodeDecodeError:
        return {}
    return dict(zip(lines[::2], lines[1::2], strict=False)) if head == FORMAT else {}


def write_section(value: object) -> str:
    """A fact as a text of one line."""
    return _WRITER.encode(encode(value))


def read_section(kind: Any, text: str) -> Any:
    """The fact of a type that such a text stands for.

    Raises:
        TypeError, ValueError: it stands for none.
    """
    return decode(kind, json.loads(text))

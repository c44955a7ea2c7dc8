"""Values as JSON: a dataclass or a named tuple becomes an object with its fields in their order.

An enum becomes its value, a path its text, a tuple a list; a key of a mapping becomes text, `unknown` where
it is None. Where a document says something in another order or by another name than the type that holds it,
a `define_shape` says so, once, beside the document. `schema` reads the same types and shapes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from math import isfinite
from operator import attrgetter
from pathlib import PurePath
from typing import Any, NamedTuple

from artifact_inspector.model import SourceLine
from artifact_inspector.report.ci_escaping import replace_commands


@dataclasses.dataclass(frozen=True)
class TextExamples:
    """The words that a text field may hold now; more may come within a schema version."""

    values: tuple[str, ...]


class Key(NamedTuple):
    """One key of an object, and the path of its value."""

    name: str
    path: str
    """Attributes from the object on, with dots between; null where one on the way is None."""
    digits: int | None = None
    """Decimal places that numbers are rounded to."""
    empty_is_null: bool = False
    """An empty text means that there is none."""
    is_inline: bool = False
    """Its keys are inserted in place of this one."""


class _Shape(NamedTuple):
    keys: str = ""
    without: str = ""
    inline: str = ""
    empty: str = ""
    rounded: Mapping[str, int] = {}
    types: Mapping[str, Any] = {}
    title: str | None = None


_SHAPES: dict[type, _Shape] = {}
_PLAIN = _Shape()


def define_shape(
    kind: type,
    keys: str = "",
    *,
    without: str = "",
    inline: str = "",
    empty: str = "",
    rounded: Mapping[str, int] | None = None,
    types: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> None:
    """Say how the object of a type differs from its fields in their order.

    Args:
        keys: in order, with the path of the value where it has another name: `line store=is_store`. Fields
            that are not named follow.
        without: fields that are in no document.
        inline: fields whose keys are inserted in their place.
        empty: keys whose empty text means that there is none.
        rounded: key → decimal places.
        types: key → what a schema says of it, where that is narrower than the field's own type.
        title: what the schema calls it; the type's name without `Facts` or `Document` by default.
    """
    _SHAPES[kind] = _Shape(keys, without, inline, empty, rounded or {}, types or {}, title)


def is_object(kind: Any) -> bool:
    """True for a type whose values become objects."""
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


@cache
def keys_of(kind: type) -> tuple[Key, ...]:
    """The keys of a type's objects, in order.

    Raises:
        TypeError: its shape names a field that it has not.
    """
    kind = next((base for base in kind.__mro__ if base in _SHAPES), kind)  # with the fields of that type only
    shape_of_kind = _shape_of(kind)
    fields = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    inline, empty = shape_of_kind.inline.split(), shape_of_kind.empty.split()
    named = [(name, path or name) for name, _, path in (field.partition("=") for field in shape_of_kind.keys.split())]
    handled = {*(path.partition(".")[0] for _, path in named), *shape_of_kind.without.split()}
    for name in (*handled, *inline):
        if name not in fields and not hasattr(kind, name):
            raise TypeError(f"{kind.__name__} has no {name}")
    named += [(name, name) for name in fields if name not in handled and name not in dict(named)]
    return tuple(
        Key(name, path, shape_of_kind.rounded.get(name), name in empty, name in inline) for name, path in named
    )


def override_of(kind: type, name: str) -> Any:
    """What a shape says of the type of a key; None for the field's own."""
    return _shape_of(kind).types.get(name)


def title_of(kind: type) -> str:
    """What a schema calls a type."""
    return _shape_of(kind).title or kind.__name__.removesuffix("Facts").removesuffix("Document")


def _shape_of(kind: type) -> _Shape:
    return next((_SHAPES[base] for base in kind.__mro__ if base in _SHAPES), _PLAIN)


def encode(value: object) -> Any:
    """A value as what `json` writes."""
    kind: type = type(value)
    return _encoder_of(kind)(value)


def as_text(document: object, encoding: str | None, *, indent: int | None = 2) -> str:
    """The document as strict JSON, in ASCII where the stream's encoding is not UTF-8.

    Args:
        indent: None for one line.
    """
    utf8 = (encoding or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    text = json.dumps(encode(document), indent=indent, ensure_ascii=not utf8, allow_nan=False)
    return escape_text(text + "\n")


def escape_text(text: str) -> str:
    """JSON in which what shows nothing of its own is escaped, and what a CI system would obey anywhere."""
    text = replace_commands(text, ":", "\\u0023") if "##" in text else text
    text = text.replace("\x7f", "\\u007f")
    plain = text.isascii() or text.replace("\n", " ").isprintable()
    return text if plain else "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


@cache
def _encoder_of(kind: type) -> Callable[[Any], Any]:
    if kind is float:  # untrusted metadata may have 1e999
        return lambda value: value if isfinite(value) else None
    if issubclass(kind, Enum):
        return attrgetter("value")
    if issubclass(kind, SourceLine):
        return attrgetter("innermost")
    if issubclass(kind, Mapping):
        return lambda value: {_text(key): encode(item) for key, item in value.items()}
    if is_object(kind):
        return _object_encoder(kind)
    if issubclass(kind, tuple | list | frozenset):
        return lambda value: [encode(item) for item in value]
    return str if issubclass(kind, PurePath) else lambda value: value


def _text(key: object) -> str:
    if isinstance(key, Enum):
        return str(key.value)
    return "unknown" if key is None else str(key)


def _object_encoder(kind: type) -> Callable[[Any], dict[str, Any]]:
    steps = [(key, _getter(key.path)) for key in keys_of(kind)]

    def encoded(value: Any) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for key, get in steps:
            field_value = get(value)
            if key.is_inline:
                document |= encode(field_value)
            elif key.digits is not None:
                document[key.name] = _round(field_value, key.digits)
            else:
                document[key.name] = None if key.empty_is_null and field_value == "" else encode(field_value)
        return document

    return encoded


def _getter(path: str) -> Callable[[Any], Any]:
    if "." not in path:
        return attrgetter(path)
    names = path.split(".")

    def get(value: Any) -> Any:
        for name in names:
            value = None if value is None else getattr(value, name)
        return value

    return get


def _round(value: Any, digits: int) -> Any:
    if isinstance(value, tuple):
        return [_round(item, digits) for item in value]
    return None if value is None else round(value, digits)

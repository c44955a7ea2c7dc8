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
from functools import cache, partial
from math import isfinite
from operator import attrgetter
from pathlib import PurePath
from typing import Annotated, Any, NamedTuple, TypeVar

from artifact_inspector.model import SourceLine
from artifact_inspector.report.ci_escaping import replace_commands

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class TextExamples:
    """The words that a text field may hold now; more may come within a schema version."""

    values: tuple[str, ...]


def words(*values: str) -> Any:
    """The type of a text that may hold these words now."""
    return Annotated[str, TextExamples(values)]


class FactsByKey:
    """Marks a mapping of facts, whose schema is made of their definitions."""


class Key(NamedTuple):
    """One key of an object, and the path of its value."""

    name: str
    path: tuple[str, ...]
    """Attributes from the object on; null where one on the way is None."""
    digits: int | None = None
    """Decimal places that numbers are rounded to."""
    empty_is_null: bool = False
    """An empty text means that there is none."""
    is_inline: bool = False
    """Its keys are inserted in place of this one."""
    is_hidden: bool = False
    annotation: Any = None
    """What a schema says of it, where that is narrower than the attribute's own type."""


class _Path:
    """Records the attributes that a shape reads."""

    def __init__(self, key: Key) -> None:
        self._key = key

    def __getattr__(self, name: str) -> _Path:
        return _Path(Key(name, (*self._key.path, name)))


_SHAPES: dict[type, tuple[Callable[[Any], tuple[object, ...]], str | None]] = {}


def define_shape(kind: type[T], keys: Callable[[T], tuple[object, ...]], title: str | None = None) -> None:
    """Say how the object of a type differs from its fields in their order.

    Args:
        keys: the first keys, as attributes of a value; a key is called as the last attribute of its path. Fields
            that are not named follow.
        title: what the schema calls it; the type's name without `Facts` or `Document` by default.
    """
    _SHAPES[kind] = keys, title


def _marked(value: T, **marks: Any) -> T:
    return _Path(value._key._replace(**marks)) if isinstance(value, _Path) else value  # type: ignore[return-value]


def named(name: str, value: T) -> T:
    """An attribute under another name."""
    return _marked(value, name=name)


def rounded(value: T, digits: int) -> T:
    """Numbers with so many decimal places."""
    return _marked(value, digits=digits)


def null_if_empty(value: T) -> T:
    """A text that is null where it is empty."""
    return _marked(value, empty_is_null=True)


INLINED = {"is_inline": True}
"""Metadata of a field whose keys replace it."""


def inlined(value: T) -> T:
    """An object whose keys replace it."""
    return _marked(value, **INLINED)


def hidden(*values: object) -> tuple[object, ...]:
    """Fields that are in no document."""
    return tuple(_marked(value, is_hidden=True) for value in values)


def narrowed(value: object, annotation: Any) -> object:
    """An attribute of which the schema says more than its type."""
    return _marked(value, annotation=annotation)


def present(value: T | None) -> T:
    """An attribute that may be None; its own attributes are null then."""
    return value  # type: ignore[return-value]


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
    fields: dict[str, Mapping[str, Any]] = {name: {} for name in getattr(kind, "_fields", ())}
    fields = fields or {field.name: field.metadata for field in dataclasses.fields(kind)}
    keys: list[Key] = [path._key for path in _shape_of(kind)[0](_Path(Key("", ())))]  # type: ignore[attr-defined]
    handled = {key.path[0] for key in keys}
    if absent := [name for name in handled if name not in fields and not hasattr(kind, name)]:
        raise TypeError(f"{kind.__name__} has no {absent[0]}")
    keys += [Key(name, (name,), **marks) for name, marks in fields.items() if name not in handled]
    return tuple(key for key in keys if not key.is_hidden)


def title_of(kind: type) -> str:
    """What a schema calls a type."""
    return _shape_of(kind)[1] or kind.__name__.removesuffix("Facts").removesuffix("Document")


def _shape_of(kind: type) -> tuple[Callable[[Any], tuple[object, ...]], str | None]:
    return next((_SHAPES[base] for base in kind.__mro__ if base in _SHAPES), (lambda value: (), None))


def encode(value: object) -> Any:
    """A value as what `json` writes."""
    kind: type = type(value)
    return _encoder_of(kind)(value)


def as_text(document: object, encoding: str | None, *, indent: int | None = 2) -> str:
    """The document as strict JSON, in ASCII where the stream's encoding is not UTF-8. `indent`: None for one line."""
    utf8 = (encoding or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    encoder = json.JSONEncoder(ensure_ascii=not utf8, allow_nan=False)
    plain = encode(document)
    return escape_text((encoder.encode(plain) if indent is None else _indented(plain, encoder, indent)) + "\n")


def _indented(value: Any, encoder: json.JSONEncoder, indent: int, margin: str = "\n") -> str:
    """The text of `json.dumps(value, indent=indent)`, which is several times slower."""
    if value.__class__ is int:
        return str(value)
    if not value or not isinstance(value, dict | list):
        return encoder.encode(value)
    inner = margin + " " * indent
    if isinstance(value, dict):
        members = [f"{encoder.encode(key)}: {_indented(item, encoder, indent, inner)}" for key, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{margin}}}"
    return f"[{inner}{f',{inner}'.join([_indented(item, encoder, indent, inner) for item in value])}{margin}]"


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
    steps = [
        (key, attrgetter(*key.path) if len(key.path) == 1 else partial(_follow, key.path)) for key in keys_of(kind)
    ]

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


def _follow(path: tuple[str, ...], value: Any) -> Any:
    for name in path:
        value = None if value is None else getattr(value, name)
    return value


def _round(value: Any, digits: int) -> Any:
    if isinstance(value, tuple):
        return [_round(item, digits) for item in value]
    return None if value is None else round(value, digits)

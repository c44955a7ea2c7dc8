"""JSON Schemas of the documents, made of their types.

A dataclass or a named tuple becomes an object, the docstrings under its fields and properties the descriptions, an enum
or `TextExamples` the examples of a text that may get more words. Source: JSON Schema, draft 2020-12.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from pathlib import PurePath
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from artifact_inspector.facts.lazy import lazy
from artifact_inspector.report.json._document import SCHEMA_VERSION
from artifact_inspector.report.json._encoding import FactsByKey, Key, TextExamples, is_object, keys_of, title_of
from artifact_inspector.vocabulary.fact import Absent, Fact, Of
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import FACTS

DOCUMENTS: Mapping[str, str] = {
    "cache": "cache", "listing": "views", "findings": "cache", "pair": "comparison", "corpus": "comparison",
    "regress": "comparison", "matrix": "comparison", "baseline": "baseline", "check": "baseline",
    "compiled": "compiling", "bandwidth": "prediction", "captured": "compiling", "bench": "compiling",
    "prediction": "prediction", "memory_check": "prediction", "ranking": "prediction", "advice": "advise",
    "pressure": "views", "timeline": "views", "passes": "compiling", "bisection": "compiling", "index": "_document",
    "watched": "cache", "health": "health", "reach": "comparison", "remedies": "comparison", "reasons": "comparison",
    "causes": "comparison", "error": "_document",
}  # fmt: skip
"""Name of a document, as its field `document` has it → module of this folder."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}

Schema = dict[str, Any]


def schema_of(name: str) -> Schema:
    """The JSON Schema of a document: open, as fields may be added within a schema version.

    Raises:
        KeyError: there is no such document.
    """
    definitions: dict[type, Schema] = {}
    body = _object(_type_of(name), definitions)
    named = {title_of(kind): schema for kind, schema in definitions.items()}
    if len(named) < len(definitions):
        raise TypeError(f"two types of the document {name!r} share a name")
    return {
        "$schema": _DRAFT,
        "$id": f"urn:artifact-inspector:schema:{SCHEMA_VERSION}:{name}",
        "title": name,
        **body,
        "$defs": dict(sorted(named.items())),
    }


def describe_document(name: str) -> str:
    """What a document holds, and the command that prints it, in one line."""
    return inspect.cleandoc(_type_of(name).__doc__ or "").partition("\n\n")[0].replace("\n", " ")


class DocumentList:
    """The documents, each with what it holds."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        for name in DOCUMENTS:
            grid.add_row(Text(name, "bold"), Text(describe_document(name)))
        yield grid


def _type_of(name: str) -> type:
    module = import_module(f"{__package__}.{DOCUMENTS[name]}")
    kind: type = getattr(module, f"{name.title().replace('_', '')}Document")
    return kind


def _schema(kind: Any, definitions: dict[type, Schema]) -> Schema:
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind in (Any, object):
        return {}
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return {"type": "string", "examples": [member.value for member in kind]}
    if inspect.isclass(kind) and issubclass(kind, str | PurePath):
        return {"type": "string"}
    if is_object(kind):
        if kind not in definitions:
            definitions[kind] = {}  # a type may hold itself
            definitions[kind] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{title_of(kind)}"}
    return _composite(kind, definitions)


def _composite(kind: Any, definitions: dict[type, Schema]) -> Schema:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated and FactsByKey in arguments[1:]:
        return _facts_schema(definitions)
    if origin is Annotated:
        examples = next(annotation for annotation in arguments[1:] if isinstance(annotation, TextExamples))
        return {**_schema(arguments[0], definitions), "examples": list(examples.values)}
    if origin is Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return _union([_schema(argument, definitions) for argument in arguments])
    if origin is tuple and arguments[-1] is not Ellipsis:
        return {
            "type": "array",
            "prefixItems": [_schema(argument, definitions) for argument in arguments],
            "minItems": len(arguments),
            "maxItems": len(arguments),
        }
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        keys = _schema(arguments[0], definitions)
        values = {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
        return {**values, "propertyNames": keys} if "examples" in keys else values
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    raise TypeError(f"{kind!r} has no JSON Schema here")


def _union(alternatives: list[Schema]) -> Schema:
    if all(set(alternative) == {"type"} for alternative in alternatives):
        return {"type": [alternative["type"] for alternative in alternatives]}
    return {"anyOf": alternatives}


def _object(kind: type, definitions: dict[type, Schema]) -> Schema:
    properties = _properties(kind, definitions)
    return {
        "description": _plain(kind.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def _properties(kind: type, definitions: dict[type, Schema]) -> dict[str, Schema]:
    properties: dict[str, Schema] = {}
    for key in keys_of(kind):
        value = _describe_value(kind, key)
        if key.is_inline:
            properties |= _properties(value.kind, definitions)
            continue
        properties[key.name] = _schema(value.kind, definitions)
        if value.description:
            description = value.description
            properties[key.name]["description"] = (
                description.replace("empty", "null") if key.empty_is_null else description
            )
    return properties


class _DescribedType(NamedTuple):
    kind: Any
    description: str


def _describe_value(kind: type, key: Key) -> _DescribedType:
    current: Any = kind
    description, optional = "", key.empty_is_null
    for name in key.path:
        described, hint = _attribute(current, name)
        description = described or description
        members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else ()
        bare = [member for member in members if member is not type(None)]
        last_optional = len(bare) < len(members)
        current = bare[0] if last_optional and len(bare) == 1 else hint
        optional = optional or last_optional
    if not description and inspect.isclass(current) and issubclass(current, str) and current is not str:
        description = "" if issubclass(current, Enum) else _first_paragraph(current)
    current = current if key.annotation is None else key.annotation
    is_optional = type(None) in get_args(current) and get_origin(current) in (Union, types.UnionType)
    return _DescribedType(current | None if optional and not is_optional else current, description)


def _attribute(kind: type, name: str) -> tuple[str, Any]:
    """The docstring of a field or property of a type, and its type."""
    owner = next(base for base in kind.__mro__ if name in vars(base) or name in _annotations(base))
    member = vars(owner).get(name)
    if isinstance(member, property | cached_property | lazy):
        getter = (
            member.fget
            if isinstance(member, property)
            else (member.func if isinstance(member, cached_property) else member.find)
        )
        return _first_paragraph(getter), get_type_hints(getter, include_extras=True).get("return", Any)
    descriptions = (_field_descriptions(base).get(name, "") for base in kind.__mro__)
    return next(filter(None, descriptions), ""), _hints(kind)[name]


def _annotations(kind: type) -> Mapping[str, Any]:
    annotations: Mapping[str, Any] = vars(kind).get("__annotations__", {})
    return annotations


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _field_descriptions(kind: type) -> dict[str, str]:
    if kind.__module__ in ("builtins", "typing"):
        return {}
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    descriptions: dict[str, str] = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    descriptions[field.target.id] = _plain(text)
    return descriptions


def _first_paragraph(member: Any) -> str:
    return _plain((inspect.getdoc(member) or "").partition("\n\n")[0])


def _plain(text: str) -> str:
    """A docstring on one line, in the words of JSON."""
    text = " ".join(inspect.cleandoc(text).split())
    return re.sub(r"(^|\. )None\b", r"\1Null", text).replace("None", "null")


def _facts_schema(definitions: dict[type, Schema]) -> Schema:
    """A pattern for the keys of each fact, with the type of its value."""
    patterns = {
        _pattern(fact): {**_schema(_value_type(fact), definitions), "description": _description(fact)}
        for fact in FACTS
        if fact.is_row
    }
    return {"type": "object", "patternProperties": patterns}


def _pattern(fact: Fact) -> str:
    """Matches the keys of a fact: a family has members, a fact of a stage or region names these."""
    key = re.escape(fact.key).replace(r"\{step\}", f"(?:{'|'.join(STEPS)})").replace(r"\{\}", "(?:.*)")
    return f"^{'.+[.]' if fact.of in (Of.REGION, Of.REGION_AT_STAGE) else ''}{key}$"


def _value_type(fact: Fact) -> Any:
    """The type of a fact's value, for a family that of each member."""
    kind = fact.value_type
    if get_origin(kind) is dict:
        return get_args(kind)[1]
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    members = tuple(member for member in get_args(kind) if member is not Absent)
    return Union[members]  # noqa: UP007 - of a tuple of types


def _description(fact: Fact) -> str:
    unit = f", {fact.unit}" if fact.unit else ""
    reading = f"; {fact.reading}" if fact.reading else ""
    return f"{fact.label.strip()}{unit}{reading}".replace("{step}", "a stage").replace("{}", "shared memory")

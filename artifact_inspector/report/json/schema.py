"""JSON Schemas of the documents, made of their types.

A `TypedDict` or dataclass becomes an object, its docstrings the descriptions, `Words` the examples of a text
that may get more words. Source: JSON Schema, draft 2020-12.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from artifact_inspector.report.json._types import SCHEMA_VERSION, Words

__all__ = ["DOCUMENTS", "DocumentList", "describe_document", "schema_of"]

DOCUMENTS: Mapping[str, str] = {
    "cache": "artifact_inspector.report.json.cache:CacheJson",
    "listing": "artifact_inspector.report.json.listing:ListingJson",
    "findings": "artifact_inspector.report.json.findings:FindingsJson",
    "pair": "artifact_inspector.report.json.comparison:PairJson",
    "corpus": "artifact_inspector.report.json.comparison:CorpusJson",
    "matrix": "artifact_inspector.report.json.comparison:MatrixJson",
    "baseline": "artifact_inspector.report.json.baseline:BaselineJson",
    "check": "artifact_inspector.report.json.baseline:CheckJson",
    "compiled": "artifact_inspector.report.compiled:CompiledJson",
    "bandwidth": "artifact_inspector.report.traffic:BandwidthJson",
    "captured": "artifact_inspector.report.captured:CapturedJson",
    "bench": "artifact_inspector.report.json.bench:BenchJson",
    "error": "artifact_inspector.report.json.error:ErrorJson",
}
"""Name of a document, as its field `document` has it → module and type."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Mapping[object, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

Schema = dict[str, Any]


def schema_of(name: str) -> Schema:
    """The JSON Schema of a document: open, as fields may be added within a schema version.

    Raises:
        KeyError: there is no such document.
    """
    document = _type_of(name)
    known: dict[type, Schema] = {}
    body = _object(document, known)
    named = {_name(kind): schema for kind, schema in known.items()}
    if len(named) < len(known):
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
    module, _, attribute = DOCUMENTS[name].partition(":")
    found: type = getattr(import_module(module), attribute)
    return found


def _schema(kind: Any, known: dict[type, Schema]) -> Schema:
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind in (Any, object):
        return {}
    if is_typeddict(kind) or dataclasses.is_dataclass(kind):
        if kind not in known:
            known[kind] = {}  # a type may hold itself
            known[kind] = _object(kind, known)
        return {"$ref": f"#/$defs/{_name(kind)}"}
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        words = next(found for found in parts[1:] if isinstance(found, Words))
        return {**_schema(parts[0], known), "examples": list(words.words)}
    if origin is Literal:
        return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
    if origin in (Union, types.UnionType):
        return _union([_schema(part, known) for part in parts])
    if origin is tuple and parts[-1] is not Ellipsis:
        return {
            "type": "array",
            "prefixItems": [_schema(part, known) for part in parts],
            "minItems": len(parts),
            "maxItems": len(parts),
        }
    if inspect.isclass(origin) and issubclass(origin, Mapping):
        keys = _schema(parts[0], known)
        values = {"type": "object", "additionalProperties": _schema(parts[1], known)}
        return {**values, "propertyNames": keys} if "examples" in keys else values
    if inspect.isclass(origin) and issubclass(origin, Sequence):
        return {"type": "array", "items": _schema(parts[0], known)}
    raise TypeError(f"{kind!r} has no JSON Schema here")


def _union(parts: list[Schema]) -> Schema:
    if all(set(part) == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


def _object(kind: Any, known: dict[type, Schema]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    described = _described(kind)
    properties: dict[str, Schema] = {}
    for name, hint in hints.items():
        properties[name] = _schema(hint, known)
        if name in described:
            properties[name]["description"] = described[name]
    return {
        "description": _plain(kind.__doc__ or ""),
        "type": "object",
        "properties": properties,
        "required": list(hints),
    }


def _name(kind: type) -> str:
    return kind.__name__.removesuffix("Json")


def _described(kind: type) -> dict[str, str]:
    """Field → the docstring under it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = _plain(text)
    return found


def _plain(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split())

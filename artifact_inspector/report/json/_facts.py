"""The facts of a kernel by key, as JSON, and the schema that their definitions make."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.vocabulary.fact import Absent, Fact, Of, Value
from artifact_inspector.vocabulary.names import STEPS
from artifact_inspector.vocabulary.rows import FACTS, summarise


class FactsByKey:
    """Marks a mapping of facts, whose schema is made of their definitions."""


FactValues = Annotated[Mapping[str, Value], FactsByKey]


def fact_values(kernel: KernelFacts) -> dict[str, Value]:
    """Key → value of every fact; a fact that does not apply is absent."""
    return {row.key: row.value for row in summarise(kernel).rows}


def facts_schema(schema_of: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """A pattern for the keys of each fact, with the type of its value.

    Args:
        schema_of: the schema of a type.
    """
    patterns = {
        _pattern(fact): {**schema_of(_value_type(fact)), "description": _description(fact)}
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
    if get_origin(kind) not in (Union, UnionType):
        return kind
    members = tuple(member for member in get_args(kind) if member is not Absent)
    return Union[members]  # noqa: UP007 - of a tuple of types


def _description(fact: Fact) -> str:
    unit = f", {fact.unit}" if fact.unit else ""
    reading = f"; {fact.reading}" if fact.reading else ""
    return f"{fact.label.strip()}{unit}{reading}".replace("{step}", "a stage").replace("{}", "shared memory")

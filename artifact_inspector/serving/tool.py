"""What a tool is: its name, its arguments, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.serving.bounds import DEFAULT_TOKENS, MOST_TOKENS, Answer, Bound, Item, fit, safe
from artifact_inspector.serving.roots import Roots


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema of its value, with a description."""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """What tools work with."""

    roots: Roots
    executes: bool = False
    """Whether the user's code and compilers may run."""


Answering = Callable[[Service, Mapping[str, Any], Bound], Answer]


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that can be asked for."""

    name: str
    description: str
    parameters: Sequence[Parameter]
    answer: Answering
    executes: bool = False
    """It runs the user's code, or a compiler."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        every = (*self.parameters, _TOKENS)
        return {
            "type": "object",
            "properties": {one.name: dict(one.schema) for one in every},
            "required": [one.name for one in every if one.required],
            "additionalProperties": False,
        }


def text(name: str, description: str, *, required: bool = False) -> Parameter:
    """An argument that is a text."""
    return Parameter(name, {"type": "string", "description": description}, required)


def texts(name: str, description: str, *, required: bool = False) -> Parameter:
    """An argument that is a list of texts."""
    words = {"type": "array", "items": {"type": "string"}, "description": description}
    return Parameter(name, words, required)


def number(name: str, description: str, least: int = 0) -> Parameter:
    """An argument that is a whole number, `least` or more."""
    return Parameter(name, {"type": "integer", "minimum": least, "description": description})


_TOKENS = Parameter(
    "tokens",
    {
        "type": "integer",
        "minimum": 100,
        "maximum": MOST_TOKENS,
        "description": f"How long the answer may be, about; {DEFAULT_TOKENS} by default.",
    },
)


def page(
    tool: str, given: Mapping[str, Any], items: Sequence[Item], bound: Bound, what: str, before: int = 0
) -> Answer:
    """The items from the offset on, as many as fit, and the call that goes on behind them.

    Args:
        before: items that were passed over already.
    """
    offset = int(given.get("offset", 0))
    kept = fit(items[offset - before :], bound)
    done = offset + len(kept)
    left = before + len(items) - done
    if left <= 0:
        return Answer(kept)
    call = {"tool": tool, "arguments": {**safe(dict(given)), "offset": done}}
    return Answer(kept, f"{left} of {before + len(items)} {what}", call)


CACHE = text("cache", "A Triton cache directory, or one file of a kernel; Triton's own by default.")
NAME = text("name", "Part of a kernel's name or hash.")
TARGET = text(
    "target",
    "Only these, by commas: a GPU (sm_90, H100), a Triton (3.6), w4, s3, a tile (128x64x32), GROUP_M=8.",
)
OFFSET = number("offset", "Pass over so many items; `next` of an answer has it.")

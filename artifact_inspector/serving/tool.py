"""The type of an MCP tool: name, arguments, and the function that answers."""

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
    """JSON Schema of its value, including a description."""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """The context of all tools."""

    roots: Roots
    executes: bool = False
    """Whether tools may run user code and compilers."""


Answering = Callable[[Service, Mapping[str, Any], Bound], Answer]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a client can call."""

    name: str
    description: str
    parameters: Sequence[Parameter]
    answer: Answering
    executes: bool = False
    """Whether it runs user code or a compiler."""

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
    """A string argument."""
    return Parameter(name, {"type": "string", "description": description}, required)


def texts(name: str, description: str, *, required: bool = False) -> Parameter:
    """An argument that is a list of strings."""
    words = {"type": "array", "items": {"type": "string"}, "description": description}
    return Parameter(name, words, required)


def number(name: str, description: str, least: int = 0) -> Parameter:
    """An integer argument, at least `least`."""
    return Parameter(name, {"type": "integer", "minimum": least, "description": description})


_TOKENS = Parameter(
    "tokens",
    {
        "type": "integer",
        "minimum": 100,
        "maximum": MOST_TOKENS,
        "description": f"Maximal tokens of the answer. Default: {DEFAULT_TOKENS}.",
    },
)


def page(
    tool: str, given: Mapping[str, Any], items: Sequence[Item], bound: Bound, what: str, before: int = 0
) -> Answer:
    """The items from the offset on that fit, and the call that returns the next ones.

    Args:
        before: items that were skipped already.
    """
    offset = int(given.get("offset", 0))
    kept = fit(items[offset - before :], bound)
    done = offset + len(kept)
    left = before + len(items) - done
    if left <= 0:
        return Answer(kept)
    call = {"tool": tool, "arguments": {**safe(dict(given)), "offset": done}}
    return Answer(kept, f"{left} of {before + len(items)} {what}", call)


CACHE = text("cache", "A Triton cache directory, or one file of a kernel. Default: Triton's own cache.")
NAME = text("name", "Part of a kernel's name or hash.")
TARGET = text(
    "target",
    "Only these, separated by commas: a GPU (sm_90, H100), a Triton version (3.6), warps (w4), stages (s3), "
    "a tile (128x64x32), a constant (GROUP_M=8).",
)
OFFSET = number("offset", "Skip this many items; `next` of an answer contains it.")

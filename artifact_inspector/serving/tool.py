"""The type of an MCP tool, and its bounded answers: the items that fit, and the call that returns what was left out.

Text from files is escaped, put on one line and truncated, so that it cannot be read as an instruction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.serving.roots import AllowedDirectories

DEFAULT_TOKENS = 600
MAX_TOKENS = 20_000
CHARACTERS_PER_TOKEN = 3
"""Characters of JSON per token; common tokenizers have 3 to 4."""
RESERVED_CHARACTERS = 500
"""Characters reserved for `left_out` and `next`."""
MIN_CHARACTERS = 300
"""Characters of the items in the smallest answers, which then have more tokens than requested."""
MAX_STRING = 600
"""Maximal characters of one string."""
MAX_LIST = 24
"""Maximal members of a list inside an item."""
MAX_CUT_STRING = 80
"""Characters of a string in an item that does not fit."""
_MULTILINE_KEYS = frozenset({"message", "remedy", "page", "effect"})
"""Keys whose strings may have several lines: text of this program, or messages of a compiler."""

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool."""

    items: Sequence[Item]
    left_out: str | None = None
    """What did not fit or was not requested; None if the answer is complete."""
    next: Mapping[str, Any] | None = None
    """The call that returns what was left out: `tool`, `arguments`."""
    problems: Sequence[Item] = field(default=())
    """The first files that could not be read: `path`, `problem`."""

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON of its schema."""
        return {
            "items": list(self.items),
            "left_out": self.left_out,
            "next": None if self.next is None else dict(self.next),
            "problems": [sanitize(problem) for problem in self.problems],
        }


@dataclass(frozen=True, slots=True)
class AnswerBound:
    """The maximal size of an answer."""

    tokens: int = DEFAULT_TOKENS

    @property
    def characters(self) -> int:
        """Maximal characters of the items as JSON."""
        return max((min(self.tokens, MAX_TOKENS) * CHARACTERS_PER_TOKEN) - RESERVED_CHARACTERS, MIN_CHARACTERS)


def take_fitting(items: Iterable[Item], bound: AnswerBound) -> list[Item]:
    """The first items that fit, sanitized; at least one, truncated if it does not fit."""
    fitting: list[Item] = []
    free_characters = bound.characters
    for item in items:
        sanitized = sanitize(item)
        size = size_of(sanitized)
        if size > free_characters:
            if not fitting:
                fitting.append(_truncate(sanitized, free_characters))
            break
        fitting.append(sanitized)
        free_characters -= size
    return fitting


def size_of(item: Item) -> int:
    """Characters of an item in an answer."""
    return len(json.dumps(sanitize(item), ensure_ascii=False)) + 2


def sanitize(value: Any, key: str = "") -> Any:
    """A value without control characters, text-direction marks or line breaks in its strings."""
    if isinstance(value, str):
        text = escape_unprintable(value)
        text = text if key in _MULTILINE_KEYS else text.replace("\n", "\\n")
        longest = MAX_STRING * 4 if key in _MULTILINE_KEYS else MAX_STRING
        return text if len(text) <= longest else f"{text[:longest]}… {len(text) - longest} more characters"
    if isinstance(value, Mapping):
        return {sanitize(str(name)): sanitize(member, str(name)) for name, member in value.items()}
    if isinstance(value, list | tuple):
        members = [sanitize(member, key) for member in value[:MAX_LIST]]
        return members if len(value) <= MAX_LIST else [*members, f"… {len(value) - MAX_LIST} more"]
    return value


def _truncate(item: Item, free_characters: int) -> Item:
    """The first keys of an item that fit; long strings are cut."""
    fitting: dict[str, Any] = {}
    for key, value in item.items():
        if isinstance(value, str) and len(value) > MAX_CUT_STRING:
            value = f"{value[:MAX_CUT_STRING]}…"
            fitting["cut"] = True
        if len(json.dumps({**fitting, key: value, "cut": True}, ensure_ascii=False)) > free_characters:
            fitting["cut"] = True
            break
        fitting[key] = value
    return fitting


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One argument of a tool."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema of its value, including a description unless the tool's description has one."""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of all tools."""

    roots: AllowedDirectories
    allows_execution: bool = False
    """Whether tools may run user code and compilers."""


AnswerFunction = Callable[[ToolContext, Mapping[str, Any], AnswerBound], ToolAnswer]


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool that a client can call."""

    name: str
    description: str
    parameters: Sequence[ToolParameter]
    runs_code: bool = False
    """Whether it runs user code or a compiler."""

    def answer_call(self, service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
        """Import what answers the call, and answer it."""
        module = "execute_tools" if self.runs_code else "read_tools"
        answers: Mapping[str, AnswerFunction] = import_module(f"artifact_inspector.serving.{module}").ANSWERS
        return answers[self.name](service, arguments, bound)

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        every = (*self.parameters, _TOKENS_PARAMETER)
        return {
            "type": "object",
            "properties": {parameter.name: dict(parameter.schema) for parameter in every},
            "required": [parameter.name for parameter in every if parameter.is_required],
            "additionalProperties": False,
        }


def string_parameter(name: str, description: str, *, required: bool = False) -> ToolParameter:
    """A string argument."""
    return ToolParameter(name, {"type": "string", "description": description}, required)


def strings_parameter(name: str, description: str, *, required: bool = False) -> ToolParameter:
    """An argument that is a list of strings."""
    return ToolParameter(name, {"type": "array", "items": {"type": "string"}, "description": description}, required)


def choices_parameter(name: str, choices: Sequence[str], description: str) -> ToolParameter:
    """An argument that is one of some strings."""
    return ToolParameter(name, {"enum": list(choices), "description": description})


def object_parameter(name: str, description: str) -> ToolParameter:
    """An argument that is an object."""
    return ToolParameter(name, {"type": "object", "description": description})


def integer_parameter(name: str, description: str, minimum: int = 0) -> ToolParameter:
    """An integer argument, at least `minimum`."""
    return ToolParameter(name, {"type": "integer", "minimum": minimum, "description": description})


_TOKENS_PARAMETER = ToolParameter("tokens", {"type": "integer", "minimum": 100})


def make_page(
    tool: str,
    arguments: Mapping[str, Any],
    items: Sequence[Item],
    bound: AnswerBound,
    item_name: str,
    *,
    pending: str | None = None,
) -> ToolAnswer:
    """The items from the offset on that fit, and the call that returns the next ones.

    Every page has an item, unless none is left, so `next` always advances. `pending`: what is not among the items yet,
    if anything; `next` requests it too.
    """
    offset = int(arguments.get("offset", 0))
    fitting = take_fitting(items[offset:], bound)
    end = offset + len(fitting)
    if len(items) <= end and (pending is None or not fitting):
        return ToolAnswer(fitting)
    omitted = [f"{len(items) - end} of {len(items)} {item_name}"] if len(items) > end else []
    left_out = ", and ".join([*omitted, *filter(None, [pending])])
    return ToolAnswer(fitting, left_out, {"tool": tool, "arguments": {**arguments, "offset": end}})

"""The type of an MCP tool: name, arguments, and the function that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.serving.bounds import DEFAULT_TOKENS, MAX_TOKENS, AnswerBound, Item, ToolAnswer, take_fitting
from artifact_inspector.serving.roots import AllowedDirectories


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One argument of a tool."""

    name: str
    schema: Mapping[str, Any]
    """JSON Schema of its value, including a description."""
    required: bool = False


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
    answer_call: AnswerFunction
    runs_code: bool = False
    """Whether it runs user code or a compiler."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        every = (*self.parameters, _TOKENS_PARAMETER)
        return {
            "type": "object",
            "properties": {parameter.name: dict(parameter.schema) for parameter in every},
            "required": [parameter.name for parameter in every if parameter.required],
            "additionalProperties": False,
        }


def string_parameter(name: str, description: str, *, required: bool = False) -> ToolParameter:
    """A string argument."""
    return ToolParameter(name, {"type": "string", "description": description}, required)


def strings_parameter(name: str, description: str, *, required: bool = False) -> ToolParameter:
    """An argument that is a list of strings."""
    array_schema = {"type": "array", "items": {"type": "string"}, "description": description}
    return ToolParameter(name, array_schema, required)


def integer_parameter(name: str, description: str, minimum: int = 0) -> ToolParameter:
    """An integer argument, at least `minimum`."""
    return ToolParameter(name, {"type": "integer", "minimum": minimum, "description": description})


_TOKENS_PARAMETER = ToolParameter(
    "tokens",
    {
        "type": "integer",
        "minimum": 100,
        "maximum": MAX_TOKENS,
        "description": f"Maximal tokens of the answer. Default: {DEFAULT_TOKENS}.",
    },
)


def make_page(
    tool: str,
    arguments: Mapping[str, Any],
    items: Sequence[Item],
    bound: AnswerBound,
    item_name: str,
    skipped: int = 0,
    *,
    pending: str | None = None,
) -> ToolAnswer:
    """The items from the offset on that fit, and the call that returns the next ones.

    Args:
        skipped: items that were skipped already.
        pending: what is not among the items yet, if anything; `next` requests it too.

    Every page has an item, unless none is left, so `next` always advances.
    """
    offset = int(arguments.get("offset", 0))
    fitting = take_fitting(items[offset - skipped :], bound)
    end = offset + len(fitting)
    omitted_count = skipped + len(items) - end
    if omitted_count <= 0 and (pending is None or not fitting):
        return ToolAnswer(fitting)
    left_out = ", and ".join(
        [
            *([f"{omitted_count} of {skipped + len(items)} {item_name}"] if omitted_count > 0 else []),
            *filter(None, [pending]),
        ]
    )
    return ToolAnswer(fitting, left_out, {"tool": tool, "arguments": {**arguments, "offset": end}})


CACHE_PARAMETER = string_parameter(
    "cache", "A Triton cache directory, or one file of a kernel. Default: Triton's own cache."
)
NAME_PARAMETER = string_parameter("name", "Part of a kernel's name or hash.")
TARGET_PARAMETER = string_parameter(
    "target",
    "Only these, separated by commas: a GPU (sm_90, H100), a Triton version (3.6), warps (w4), stages (s3), "
    "a tile (128x64x32), a constant (GROUP_M=8).",
)
OFFSET_PARAMETER = integer_parameter("offset", "Skip this many items; `next` of an answer contains it.")

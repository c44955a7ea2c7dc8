"""Resolves source locations of MLIR files: aliases, call sites and fused locations, as inline chains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from artifact_inspector.formats._problems import ProblemLog
from artifact_inspector.model import Frame, Location
from artifact_inspector.model.limits import FRAMES
from artifact_inspector.model.text import split_list

# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_ALIAS = re.compile(r"\n(#loc\d*) = loc\((.*)\)[ \t]*$", re.M)
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d{1,9}):(\d{1,9})(?!\d)')
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\((.*)\)$')
_ALIASED_CALL = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)$")
_CALL_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[()]| at ')
_ARGUMENT = re.compile(r'%([\w$.-]+): [^"]*? loc\("(?:[^"\\]|\\.)*"\((#loc\d*)\)\)')
_MAX_NESTING = 32
"""Maximum nesting of locations in one text; MLIR prints aliases for nested locations."""


class LocationAliases:
    """Location aliases of a file, resolved to inline chains on first use."""

    def __init__(self, text: str, log: ProblemLog) -> None:
        self._aliases: dict[str, str] = dict(_ALIAS.findall(f"\n{text}"))
        last = next(reversed(self._aliases), None)
        if last is not None and not _is_balanced(self._aliases[last]):
            del self._aliases[last]  # the file is truncated here; uses of the alias are reported as missing
        self._log = log
        self._max_callers = FRAMES.value
        self._resolved: dict[str, Location | None] = {}
        self._resolve_aliases()

    def _resolve_aliases(self) -> None:
        """Resolve aliases of positions, and aliases built from them: nearly all, in MLIR's print order."""
        resolved = self._resolved
        for alias, text in self._aliases.items():
            if text.startswith('"'):
                if (position := _POSITION.match(text)) is not None:
                    resolved[alias] = _position_location(position)
                elif (named := _NAMED.match(text)) is not None and named[1] in resolved:
                    resolved[alias] = resolved[named[1]]
            elif (call := _ALIASED_CALL.match(text)) is not None:
                inner, outer = resolved.get(call[1]), resolved.get(call[2])
                if inner is not None and outer is not None and len(inner) + len(outer) <= self._max_callers:
                    resolved[alias] = inner + outer

    def source_names(self, line: str) -> dict[str, str]:
        """Arguments that are printed with the name of a later variable → their source names.

        All parts of a descriptor have its source name; they keep their own names.
        """
        names = {
            f"%{name}": self._aliases[alias].split('"')[1]
            for name, alias in _ARGUMENT.findall(line)
            if _NAMED.match(self._aliases.get(alias, "")) is not None
        }
        times = Counter(names.values())
        return {name: source_name for name, source_name in names.items() if times[source_name] == 1}

    def resolve(self, text: str, line: int) -> Location | None:
        """The inline chain of a location attribute; None for unknown or line 0."""
        resolved = self._resolved
        if text in resolved:
            return resolved[text]
        unresolved: dict[str, tuple[_JoinFunction, tuple[str, ...]]] = {}
        stack = [text]
        while stack:
            text = stack[-1]
            if text in unresolved:
                join, inner_locations = unresolved.pop(text)
                location = join([resolved[inner] for inner in inner_locations])
                if location is not None and len(location) > self._max_callers:
                    message = f"source location with more than {self._max_callers} callers; treated as unknown"
                    self._log.report(line, message)
                    location = None
                resolved[text] = location
                stack.pop()
            elif text in resolved:
                stack.pop()
            else:
                resolved[text] = None  # a cycle of aliases resolves to None
                definition = self._aliases.get(text) if text.startswith("#") else text
                if definition is None:
                    self._log.report_missing(line, text)
                elif (position := _POSITION.match(definition)) is not None:
                    resolved[text] = _position_location(position)
                else:
                    join, inner_locations = _parse_location(definition)
                    unresolved[text] = join, inner_locations
                    stack += [inner for inner in inner_locations if inner not in resolved]
        return resolved[text]


_JoinFunction = Callable[[list[Location | None]], Location | None]


def _parse_location(text: str) -> tuple[_JoinFunction, tuple[str, ...]]:
    """The parts of a location, and the function that joins them."""
    aliased = _ALIASED_CALL.match(text)
    if aliased is not None:
        return _inline_chain, (aliased[1], aliased[2])
    if text.startswith("callsite(") and text.endswith(")"):
        callsite = _split_callsite(text[len("callsite(") : -1])
        return (_first_known, ()) if callsite is None else (_inline_chain, callsite)
    named = _NAMED.match(text)
    if named is not None:
        return _first_known, (named[1],)
    if text.startswith("fused"):
        # Several operations were fused; the first known location is used.
        return _first_known, tuple(split_list(text[text.find("[") + 1 : text.rfind("]")]))
    return _first_known, (text,) if text.startswith("#") else ()


def _is_balanced(text: str) -> bool:
    """Whether every bracket and quote is closed: `callsite(#loc1 at #loc2` is truncated."""
    marks = [mark for mark in _CALL_MARKS.findall(text) if mark != " at "]
    quoted = [mark for mark in marks if mark not in "()"]
    return marks.count("(") == marks.count(")") and all(len(q) > 1 and q.endswith('"') for q in quoted)


def _position_location(match: re.Match[str]) -> Location | None:
    line = int(match[2])
    return (Frame(match[1], line, int(match[3])),) if line else None


def _first_known(locations: list[Location | None]) -> Location | None:
    return next((location for location in locations if location is not None), None)


def _inline_chain(locations: list[Location | None]) -> Location | None:
    inner, outer = locations
    return None if inner is None or outer is None else inner + outer


def _split_callsite(text: str) -> tuple[str, str] | None:
    depth = 0
    for mark in _CALL_MARKS.finditer(text):
        if mark[0] == "(":
            depth += 1
            if depth > _MAX_NESTING:
                return None
        elif mark[0] == ")":
            depth -= 1
        elif depth == 0 and mark[0] == " at ":
            return text[: mark.start()], text[mark.end() :]
    return None

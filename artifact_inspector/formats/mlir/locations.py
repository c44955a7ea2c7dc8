"""Resolves source locations of MLIR files: aliases, call sites and fused locations, as inline chains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from artifact_inspector.formats._faults import Faults
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
_DEEPEST = 32
"""Maximum nesting of locations in one text; MLIR prints aliases for nested locations."""


class Locations:
    """Location aliases of a file, resolved to inline chains on first use."""

    def __init__(self, text: str, faults: Faults) -> None:
        self._aliases: dict[str, str] = dict(_ALIAS.findall(f"\n{text}"))
        last = next(reversed(self._aliases), None)
        if last is not None and not _is_whole(self._aliases[last]):
            del self._aliases[last]  # the file is truncated here; uses of the alias are reported as missing
        self._faults = faults
        self._most = FRAMES.most
        self._resolved: dict[str, Location | None] = {}
        self._resolve_aliases()

    def _resolve_aliases(self) -> None:
        """Resolve aliases of positions, and aliases built from them: nearly all, in MLIR's print order."""
        resolved = self._resolved
        for alias, text in self._aliases.items():
            if text.startswith('"'):
                if (position := _POSITION.match(text)) is not None:
                    resolved[alias] = _place(position)
                elif (named := _NAMED.match(text)) is not None and named[1] in resolved:
                    resolved[alias] = resolved[named[1]]
            elif (call := _ALIASED_CALL.match(text)) is not None:
                inner, outer = resolved.get(call[1]), resolved.get(call[2])
                if inner is not None and outer is not None and len(inner) + len(outer) <= self._most:
                    resolved[alias] = inner + outer

    def renamed(self, line: str) -> dict[str, str]:
        """Arguments that are printed with the name of a later variable → their source names.

        All parts of a descriptor have its source name; they keep their own names.
        """
        found = {}
        for name, alias in _ARGUMENT.findall(line):
            inner = _NAMED.match(self._aliases.get(alias, ""))
            if inner is not None:
                found[f"%{name}"] = self._aliases[alias].split('"')[1]
        times = Counter(found.values())
        return {name: called for name, called in found.items() if times[called] == 1}

    def resolve(self, text: str, line: int) -> Location | None:
        """The inline chain of a location attribute; None for unknown or line 0."""
        resolved = self._resolved
        if text not in resolved:
            self._resolve(text, line)
        return resolved[text]

    def _resolve(self, text: str, line: int) -> None:
        resolved = self._resolved
        made: dict[str, tuple[_Join, tuple[str, ...]]] = {}
        stack = [text]
        while stack:
            text = stack[-1]
            if text in made:
                join, parts = made.pop(text)
                resolved[text] = self._bounded(join([resolved[part] for part in parts]), line)
                stack.pop()
            elif text in resolved:
                stack.pop()
            else:
                resolved[text] = None  # a cycle of aliases resolves to None
                meant = self._aliases.get(text) if text.startswith("#") else text
                if meant is None:
                    self._faults.missing(line, text)
                elif (position := _POSITION.match(meant)) is not None:
                    resolved[text] = _place(position)
                else:
                    join, parts = _read(meant)
                    made[text] = join, parts
                    stack += [part for part in parts if part not in resolved]

    def _bounded(self, found: Location | None, line: int) -> Location | None:
        if found is None or len(found) <= self._most:
            return found
        self._faults.tell(line, f"source location with more than {self._most} callers; treated as unknown")
        return None


_Join = Callable[[list[Location | None]], Location | None]


def _read(text: str) -> tuple[_Join, tuple[str, ...]]:
    """The parts of a location, and the function that joins them."""
    aliased = _ALIASED_CALL.match(text)
    if aliased is not None:
        return _chain, (aliased[1], aliased[2])
    if text.startswith("callsite(") and text.endswith(")"):
        parts = _split_callsite(text[len("callsite(") : -1])
        return (_first, ()) if parts is None else (_chain, parts)
    named = _NAMED.match(text)
    if named is not None:
        return _first, (named[1],)
    if text.startswith("fused"):
        # Several operations were fused; the first known location is used.
        return _first, tuple(split_list(text[text.find("[") + 1 : text.rfind("]")]))
    return _first, (text,) if text.startswith("#") else ()


def _is_whole(text: str) -> bool:
    """Whether every bracket and quote is closed: `callsite(#loc1 at #loc2` is truncated."""
    marks = [mark for mark in _CALL_MARKS.findall(text) if mark != " at "]
    quoted = [mark for mark in marks if mark not in "()"]
    return marks.count("(") == marks.count(")") and all(len(q) > 1 and q.endswith('"') for q in quoted)


def _place(found: re.Match[str]) -> Location | None:
    line = int(found[2])
    return (Frame(found[1], line, int(found[3])),) if line else None


def _first(parts: list[Location | None]) -> Location | None:
    return next((part for part in parts if part is not None), None)


def _chain(parts: list[Location | None]) -> Location | None:
    inner, outer = parts
    return None if inner is None or outer is None else inner + outer


def _split_callsite(text: str) -> tuple[str, str] | None:
    depth = 0
    for mark in _CALL_MARKS.finditer(text):
        if mark[0] == "(":
            depth += 1
            if depth > _DEEPEST:
                return None
        elif mark[0] == ")":
            depth -= 1
        elif depth == 0 and mark[0] == " at ":
            return text[: mark.start()], text[mark.end() :]
    return None

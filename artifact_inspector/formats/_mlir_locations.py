"""Source locations of MLIR files: aliases, call sites and fused places, resolved to inline chains."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from artifact_inspector.formats._faults import Faults
from artifact_inspector.model import Frame, Location
from artifact_inspector.model.limits import FRAMES
from artifact_inspector.model.text import integer, split_list

__all__ = ["Locations"]

# A line break in front finds the starts of lines many times faster than `^`, which is tried at every place.
_ALIAS = re.compile(r"\n#(loc\d*) = loc\((.*)\)[ \t]*$", re.M)
_POSITION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?::\d+)?:?\d*)?')
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\((.*)\)$')
_CALL_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[()]| at ')
_DEEPEST = 32
"""Places inside places of one text; MLIR gives all of them aliases."""


class _Made(NamedTuple):
    """A location made of others."""

    parts: tuple[str, ...]
    join: Callable[[list[Location | None]], Location | None]


class Locations:
    """Location aliases of a file, resolved to inline chains on demand."""

    def __init__(self, text: str, faults: Faults) -> None:
        self._aliases: dict[str, str] = dict(_ALIAS.findall(f"\n{text}"))
        self._faults = faults
        self._most = FRAMES.most
        self._resolved: dict[str, Location | None] = {}

    def resolve(self, text: str, line: int) -> Location | None:
        """The chain that a location attribute names; None for unknown or line 0."""
        if text not in self._resolved:
            self._resolve(text, line)
        return self._resolved[text]

    def _resolve(self, text: str, line: int) -> None:
        resolved = self._resolved
        open_ = [(text, self._read(text, line))]
        while open_:
            text, found = open_[-1]
            if isinstance(found, _Made):
                # What is not known yet; a cycle of aliases resolves to nothing.
                resolved.setdefault(text, None)
                left = [part for part in found.parts if part not in resolved]
                if left:
                    open_ += [(part, self._read(part, line)) for part in left[:1]]
                    continue
                found = found.join([resolved[part] for part in found.parts])
                if found is not None and len(found) > self._most:
                    self._faults.tell(line, f"its place has more than {self._most} callers and is not known")
                    found = None
            resolved[text] = found
            open_.pop()

    def _read(self, text: str, line: int) -> Location | _Made | None:
        if text.startswith("#"):
            meant = self._aliases.get(text[1:])
            if meant is None:
                self._faults.missing(line, text)
                return None
            return _Made((meant,), _only)
        position = _POSITION.match(text)
        if position is not None:
            number, column = integer(position[2]), integer(position[3])
            return None if not number or column is None else (Frame(position[1], number, column),)
        named = _NAMED.match(text)
        if named is not None:
            return _Made((named[1],), _only)
        if text.startswith("callsite(") and text.endswith(")"):
            parts = _split_callsite(text[len("callsite(") : -1])
            return None if parts is None else _Made(parts, _chain)
        if text.startswith("fused"):
            # Several places made one operation; the first that is known stands for them.
            return _Made(tuple(split_list(text[text.find("[") + 1 : text.rfind("]")])), _first)
        return None


def _only(parts: list[Location | None]) -> Location | None:
    return parts[0]


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

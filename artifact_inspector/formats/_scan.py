"""What the format modules share: opcode tables and the value that describes a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from artifact_inspector.model import Access, EventKind, Frame, Instruction, Module, Stage, Wait
from artifact_inspector.source import SourceText

__all__ = ["Format", "OpcodeTable", "frames_of_callers", "loads_in_flight"]

_CALLER = re.compile(r"(.*?):(\d+)(?::(\d+))?\s*[\]\s]*$")
_GENERATION = re.compile(r"gfx(\d+)(?=[0-9a-f]{2}$|-)")


class OpcodeTable:
    """Kinds by opcode prefix, the longest prefix wins, so the order of rows means nothing.

    Args:
        rows: (kind, prefixes separated by white space); a prefix may end in `$` to stand for
            the whole opcode only.

    Raises:
        ValueError: a prefix stands in two rows.

    Example:
        >>> table = OpcodeTable([(EventKind.GLOBAL_LOAD, "ld.global"), (EventKind.OTHER, "ld$")])
        >>> table.kind("ld.global.v4.b32").name, table.kind("ld.shared").name
        ('GLOBAL_LOAD', 'UNKNOWN')
    """

    def __init__(self, rows: Iterable[tuple[EventKind, str]]) -> None:
        self._exact: dict[str, EventKind] = {}
        self._prefixes: dict[str, EventKind] = {}
        for kind, words in rows:
            for word in words.split():
                table, key = (self._exact, word[:-1]) if word.endswith("$") else (self._prefixes, word)
                if key in table:
                    raise ValueError(f"opcode prefix {word!r} stands in two rows")
                table[key] = kind
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._seen: dict[str, EventKind] = dict(self._exact)

    def kind(self, opcode: str) -> EventKind:
        """The kind of an opcode, UNKNOWN when no row fits."""
        seen = self._seen.get(opcode)
        if seen is None:
            seen = self._seen[opcode] = self._longest(opcode)
        return seen

    def _longest(self, opcode: str) -> EventKind:
        for length in self._lengths:
            found = self._prefixes.get(opcode[:length]) if length <= len(opcode) else None
            if found is not None:
                return found
        return EventKind.UNKNOWN

    @property
    def rows(self) -> Mapping[str, EventKind]:
        """Every prefix with its kind, for documentation and tests."""
        return {**self._prefixes, **{f"{word}$": kind for word, kind in self._exact.items()}}


@dataclass(frozen=True, slots=True)
class Format:
    """One language: how to recognise it, parse it and read its waits."""

    name: str
    stages: tuple[Stage, ...]
    parse: Callable[[SourceText, Stage], Module]
    sniff: Callable[[str], bool]
    """True when a text looks like this language; used for files of unknown name."""
    wait: Callable[[Instruction, Mapping[str, str]], Wait | None]
    """What a WAIT instruction waits for, given the module's attributes; None for other kinds."""
    cannot_read: tuple[str, ...]
    """What the parser is known not to understand, one sentence each; printed in the docs."""
    access: Callable[[Instruction], Access] | None = None
    """The reads of a memory operation by role, where the language tells (tensor-level IR)."""


def frames_of_callers(comment: str, files: Mapping[int, str]) -> Iterator[Frame]:
    """Frames of LLVM's line comment `a.py:1:2 @[ b.py:3:4 @[ c.py:5:6 ] ]` after the first.

    The comment has names without directories; a name stands for the path that only one file can be.
    """
    for part in comment.split("@[")[1:]:
        found = _CALLER.match(part.strip())
        if found is not None and int(found[2]):
            name = found[1]
            paths = {path for path in files.values() if path == name or path.endswith(f"/{name}")}
            yield Frame(paths.pop() if len(paths) == 1 else name, int(found[2]), int(found[3] or 0))


def loads_in_flight(immediate: int, target: str) -> int | None:
    """Vector-memory operations that an `s_waitcnt` lets fly on, None when it waits for none.

    Source: `decodeWaitcnt` in LLVM's AMDGPUBaseInfo.cpp: bits 3:0 up to gfx8, 3:0 and 15:14 on gfx9 and
    gfx10, 15:10 from gfx11 on; all bits set means no wait. An unknown target is read as gfx9.
    """
    found = _GENERATION.search(target)
    generation = 9 if found is None else int(found[1])
    if generation >= 11:
        count, most = immediate >> 10 & 63, 63
    elif generation >= 9:
        count, most = immediate & 15 | (immediate >> 14 & 3) << 4, 63
    else:
        count, most = immediate & 15, 15
    return None if count == most else count

"""What the format modules share: opcode tables and the value that describes a format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from artifact_inspector.model import Access, EventKind, Instruction, Module, Stage, Wait
from artifact_inspector.source import SourceText

__all__ = ["Format", "OpcodeTable"]


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

"""Renaming of values, and definitions in order of use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping


class NameNumbering(dict[str, str]):
    """New names in order of first appearance; a definition starts a new name."""

    def __init__(self, unchanged: Iterable[str] = ()) -> None:
        super().__init__((name, name) for name in unchanged)
        self._count = 0

    def define(self, name: str) -> str:
        """A new name for a value defined here."""
        new = self[name] = f"%{self._count}"
        self._count += 1
        return new

    def __missing__(self, name: str) -> str:
        return self.define(name)


class Definitions:
    """Definitions that a text uses by name (layouts, metadata): numbered by first use, printed last."""

    def __init__(self, bodies: Mapping[str, str]) -> None:
        self._bodies = bodies
        self._names: dict[str, str] = {}
        self._pending: deque[str] = deque()

    def __getitem__(self, name: str) -> str:
        if name not in self._bodies:
            return name
        if name not in self._names:
            self._names[name] = f"{name[0]}{len(self._names)}"
            self._pending.append(name)
        return self._names[name]

    def spell_used(self, rename: Callable[[str], str]) -> Iterator[str]:
        """The used definitions, including those that they use."""
        while self._pending:
            name = self._pending.popleft()
            yield f"{self._names[name]} = {rename(self._bodies[name])}"

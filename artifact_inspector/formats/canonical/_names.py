"""New names for what a text names, and definitions as they are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping


class Names(dict[str, str]):
    """New names in order of first appearance; a definition starts a new life of its name."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        super().__init__((name, name) for name in kept)
        self._count = 0

    def define(self, name: str) -> str:
        """A new name for a value that begins to exist here."""
        new = self[name] = f"%{self._count}"
        self._count += 1
        return new

    def __missing__(self, name: str) -> str:
        return self.define(name)


class Definitions:
    """What a text defines once and uses by name (layouts, metadata): named by first use, spelled out last."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._names: dict[str, str] = {}
        self._open: deque[str] = deque()

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            return name
        if name not in self._names:
            self._names[name] = f"{name[0]}{len(self._names)}"
            self._open.append(name)
        return self._names[name]

    def spelled(self, renamed: Callable[[str], str]) -> Iterator[str]:
        """The definitions of all that was used, and of what they use."""
        while self._open:
            name = self._open.popleft()
            yield f"{self._names[name]} = {renamed(self._known[name])}"

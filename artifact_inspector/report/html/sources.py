"""The lines of source files that can be found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from artifact_inspector.files.sources import is_as_compiled
from artifact_inspector.model import Frame, SourceLine
from artifact_inspector.model.location import base_name
from artifact_inspector.model.text import SourceText

ReadSource = Callable[[str], str | None]
"""A file as the cache names it → its text; None if it was not found."""


def NO_SOURCES(_file: str) -> str | None:  # noqa: N802 - a constant that is called
    """A reader that finds no file."""
    return None


class Sources:
    """Source files by name without directories, as source lines name them."""

    def __init__(self, read: ReadSource) -> None:
        self._read = cache(read)
        self._paths: dict[str, str] = {}
        self.changed: set[str] = set()
        """Files that changed since the kernel was compiled."""

    def hold(self, place: Frame, kernel: str) -> str:
        """Register the source file of a kernel and check whether it changed; returns its name."""
        self.know([place.file])
        name = base_name(place.file)
        found = self.text(name)
        if found is not None and not is_as_compiled(found.text, place, kernel):
            self.changed.add(name)
        return name

    def know(self, paths: Iterable[str]) -> None:
        """Register paths as the compiler wrote them; the first path of a name is read."""
        for path in paths:
            self._paths.setdefault(base_name(path), path)

    def text(self, file: str) -> SourceText | None:
        """The text of a file; None if it was not found or has changed."""
        text = None if file in self.changed else self._read(self._paths.get(file, file))
        return None if text is None else SourceText(file, text)

    def line(self, source: str) -> str | None:
        """The text of a line without indentation; None if its file was not found or is shorter."""
        place = source.innermost if isinstance(source, SourceLine) else source
        file, _, number = place.rpartition(":")
        found = self.text(file) if number.isdecimal() else None
        return None if found is None else found.line_text(int(number)).strip() or None

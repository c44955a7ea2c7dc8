"""The lines of the user's code, where their files are at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from artifact_inspector.files.sources import is_as_compiled
from artifact_inspector.model import Frame, SourceLine
from artifact_inspector.model.location import base_name
from artifact_inspector.model.text import SourceText

ReadSource = Callable[[str], str | None]
"""A file as the cache names it → its text; None for one that is not at hand."""


def NO_SOURCES(_file: str) -> str | None:  # noqa: N802 - a constant that is called
    """No file is at hand."""
    return None


class Sources:
    """Files by the name that lines of the user's code have, which is without directories."""

    def __init__(self, read: ReadSource) -> None:
        self._read = cache(read)
        self._paths: dict[str, str] = {}
        self.changed: set[str] = set()
        """Files that are not as they were compiled."""

    def hold(self, place: Frame, kernel: str) -> str:
        """Know the file that a kernel stands in, and whether it is as it was compiled; returns its name."""
        self.know([place.file])
        name = base_name(place.file)
        found = self.text(name)
        if found is not None and not is_as_compiled(found.text, place, kernel):
            self.changed.add(name)
        return name

    def know(self, paths: Iterable[str]) -> None:
        """Paths as compilers wrote them; the first of a name is the one that is read."""
        for path in paths:
            self._paths.setdefault(base_name(path), path)

    def text(self, file: str) -> SourceText | None:
        """The text of a file; None where it is not at hand, or known to be another than was compiled."""
        text = None if file in self.changed else self._read(self._paths.get(file, file))
        return None if text is None else SourceText(file, text)

    def line(self, source: str) -> str | None:
        """The text of a line, without its indent; None where its file is not at hand, or shorter."""
        place = source.innermost if isinstance(source, SourceLine) else source
        file, _, number = place.rpartition(":")
        found = self.text(file) if number.isdecimal() else None
        return None if found is None else found.line_text(int(number)).strip() or None

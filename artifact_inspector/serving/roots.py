"""The directories that a server may access; paths are checked with links and `..` resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.cache import Artifact, Cache, Problem, default_directory, open_cache, open_file
from artifact_inspector.model.printable import escaped


def default_roots() -> list[Path]:
    """The working directory and Triton's cache."""
    try:
        return [Path.cwd(), default_directory()]
    except CacheError:
        return [Path.cwd()]


class Roots:
    """The only directories that may be read and written."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self.directories: Sequence[Path] = tuple(
            dict.fromkeys(path.expanduser().resolve() for path in directories)
        )

    def inside(self, path: str | Path) -> Path:
        """The path with links resolved; relative paths start at the first root.

        Raises:
            UsageError: it is outside of all roots.
        """
        try:
            found = (self.directories[0] / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError):
            found = Path("/")
        if not self._holds(found):
            listed = ", ".join(map(str, self.directories))
            raise UsageError(
                f"{escaped(str(path))} is outside of the directories that this server may access.",
                f"Give a path in {listed}, or start the server with another --root.",
            )
        return found

    def place(self, word: str) -> str:
        """`PATH` or `PATH:NAME` with its path resolved; a path that does not exist is returned unchanged.

        Raises:
            UsageError: it is outside of all roots.
        """
        head, colon, name = word.rpartition(":")
        for path, rest in ((word, ""), (head, f"{colon}{name}")):
            if path and (path.endswith(".py") or self._has(path)):
                return f"{self.inside(path)}{rest}"
        if "/" in word or "\\" in word:
            self.inside(word)
        return word

    def open_cache(self, path: str | None) -> Cache:
        """The cache at a path, or Triton's own, without entries whose files are outside of the roots.

        Raises:
            UsageError: it is outside of all roots.
            CacheError: it is missing or unreadable.
        """
        place = self.inside(default_directory() if path is None else path)
        cache = open_file(place) if os.path.isfile(place) else open_cache(place)  # noqa: PTH113 - pathlib raises on a long name
        kept = tuple(entry for entry in cache.entries if self._holds_all(entry))
        outside = tuple(
            Problem(entry.directory, "its files are outside of the directories that this server may access")
            for entry in cache.entries
            if not self._holds_all(entry)
        )
        return replace(cache, entries=kept, problems=(*cache.problems, *outside))

    def _has(self, path: str) -> bool:
        """Whether a path exists; False also for names that are too long or name an unknown user."""
        return os.path.exists(self.directories[0] / os.path.expanduser(path))  # noqa: PTH110, PTH111

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.directories)

    def _holds_all(self, entry: Artifact) -> bool:
        return all(self._holds(file.resolve()) for file in entry.files.values() if isinstance(file, Path))

"""The directories that a server may access; paths are checked with links and `..` resolved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.cache import Artifact, Cache, Problem, default_directory, open_cache, open_file
from artifact_inspector.files.scratch import is_own_scratch
from artifact_inspector.model.escaping import escape_unprintable


def default_roots() -> list[Path]:
    """The working directory and Triton's cache."""
    try:
        return [Path.cwd(), default_directory()]
    except CacheError:
        return [Path.cwd()]


class AllowedDirectories:
    """The only directories that may be read and written."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self.directories: Sequence[Path] = tuple(dict.fromkeys(path.expanduser().resolve() for path in directories))

    def resolve(self, path: str | Path) -> Path:
        """The path with links resolved; relative paths start at the first root.

        Raises:
            UsageError: it is outside of all roots.
        """
        try:
            resolved = (self.directories[0] / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError):
            resolved = Path("/")
        if not self._contains(resolved):
            listed = ", ".join(map(str, self.directories))
            raise UsageError(
                f"{escape_unprintable(str(path))} is outside of the directories that this server may access.",
                f"Give a path in {listed}, or start the server with another --root.",
            )
        return resolved

    def resolve_name(self, text: str) -> str:
        """`PATH` or `PATH:NAME` with its path resolved; a path that does not exist is returned unchanged.

        Raises:
            UsageError: it is outside of all roots.
        """
        head, colon, name = text.rpartition(":")
        for path, suffix in ((text, ""), (head, f"{colon}{name}")):
            if path and (path.endswith(".py") or self._exists(path)):
                return f"{self.resolve(path)}{suffix}"
        if "/" in text or "\\" in text:
            self.resolve(text)
        return text

    def open_cache(self, path: str | None) -> Cache:
        """The cache at a path, or Triton's own, without entries whose files are outside of the roots.

        Raises:
            UsageError: it is outside of all roots.
            CacheError: it is missing or unreadable.
        """
        cache_path = self.resolve(default_directory() if path is None else path)
        cache = open_file(cache_path) if os.path.isfile(cache_path) else open_cache(cache_path)  # noqa: PTH113 - pathlib raises on a long name
        allowed_entries, problems = [], [*cache.problems]
        for entry in cache.entries:
            if self._contains_files(entry):
                allowed_entries.append(entry)
            else:
                message = "its files are outside of the directories that this server may access"
                problems.append(Problem(entry.directory, message))
        return replace(cache, entries=tuple(allowed_entries), problems=tuple(problems))

    def _exists(self, path: str) -> bool:
        """Whether a path exists; False also for names that are too long or name an unknown user."""
        return os.path.exists(self.directories[0] / os.path.expanduser(path))  # noqa: PTH110, PTH111

    def _contains(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.directories)

    def _contains_files(self, entry: Artifact) -> bool:
        files = [file for file in entry.files.values() if isinstance(file, Path)]
        parents = {parent: parent.resolve() for parent in {file.parent for file in files}}
        paths = (file.resolve() if file.is_symlink() else parents[file.parent] / file.name for file in files)
        return all(self._contains(path) or is_own_scratch(path) for path in paths)

"""New and changed kernels in a cache since the last check.

Only directory modification times are polled. The time of an entry changes when Triton writes or renames a
file into it. A kernel is reported once its directory stops changing, so one that is still being written
waits. Files are read only in directories that stopped changing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.walking import MAX_DEPTH

State = tuple[tuple[str, int, int], ...]
"""Suffix, modification time in nanoseconds, and size in bytes of each file of a kernel."""


class Arrivals:
    """Polls a cache. Kernels that exist at the start are reported only on request."""

    def __init__(self, root: Path, *, known: bool = True) -> None:
        """Look at a cache for the first time; it need not exist yet."""
        self._root = root
        self._times = _times(root)
        self._moving: set[str] = set()
        self._known: dict[tuple[str, str, str], State] = {}
        if known:
            self._known = {_key(one): _state(one) for one in self._entries()}
        else:
            self._moving = set(self._times)

    @property
    def is_moving(self) -> bool:
        """Whether something changed between the last two checks and is not reported yet."""
        return bool(self._moving)

    def look(self) -> tuple[Artifact, ...]:
        """The kernels that appeared or changed since the last check and are complete."""
        times = _times(self._root)
        changed = {place for place, time in times.items() if self._times.get(place) != time}
        at_rest = self._moving - changed
        if gone := self._times.keys() - times.keys():
            self._known = {key: state for key, state in self._known.items() if key[0] not in gone}
        self._times, self._moving = times, changed
        found = []
        for entry in self._entries() if at_rest else ():
            state, key = _state(entry), _key(entry)
            if key[0] in at_rest and self._known.get(key) != state:
                self._known[key] = state
                found.append(entry)
        return tuple(found)

    def _entries(self) -> tuple[Artifact, ...]:
        try:
            return open_cache(self._root).entries
        except CacheError:  # does not exist yet, or was removed
            return ()


def _times(root: Path) -> dict[str, int]:
    """Modification times of a directory and its subdirectories, as deep as caches are searched."""
    found: dict[str, int] = {}
    pending = [(str(root), 0)]
    while pending:
        place, depth = pending.pop()
        with suppress(OSError):
            found[place] = os.stat(place).st_mtime_ns  # noqa: PTH116 - there are thousands, twice a second
            if depth < MAX_DEPTH:
                with os.scandir(place) as listing:
                    pending += [(one.path, depth + 1) for one in listing if one.is_dir(follow_symlinks=False)]
    return found


def _key(artifact: Artifact) -> tuple[str, str, str]:
    """The directory of the artifact's files, and what distinguishes it from other kernels there."""
    files = (file for file in artifact.files.values() if isinstance(file, Path))
    return next((str(file.parent) for file in files), ""), artifact.stem, artifact.hash


def _state(artifact: Artifact) -> State:
    state = []
    for suffix, file in sorted(artifact.files.items()):
        with suppress(OSError):
            if isinstance(file, Path):
                stat = file.stat()
                state.append((suffix, stat.st_mtime_ns, stat.st_size))
    return tuple(state)

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
from artifact_inspector.files.walker import MAX_DEPTH

FileStamps = tuple[tuple[str, int, int], ...]
"""Suffix, modification time in nanoseconds, and size in bytes of each file of a kernel."""


class CachePoller:
    """Polls a cache. Kernels that exist at the start are reported only on request."""

    def __init__(self, root: Path, *, skip_existing: bool = True) -> None:
        """Look at a cache for the first time; it need not exist yet."""
        self._root = root
        self._directory_times = _read_directory_times(root)
        self._changed_directories: set[str] = set()
        self._seen_files: dict[tuple[str, str, str], FileStamps] = {}
        if skip_existing:
            self._seen_files = {_artifact_key(artifact): _file_stamps(artifact) for artifact in self._entries()}
        else:
            self._changed_directories = set(self._directory_times)

    @property
    def has_pending_changes(self) -> bool:
        """Whether something changed between the last two checks and is not reported yet."""
        return bool(self._changed_directories)

    def poll(self) -> tuple[Artifact, ...]:
        """The kernels that appeared or changed since the last check and are complete."""
        times = _read_directory_times(self._root)
        changed = {directory for directory, time in times.items() if self._directory_times.get(directory) != time}
        settled = self._changed_directories - changed
        if removed := self._directory_times.keys() - times.keys():
            self._seen_files = {key: state for key, state in self._seen_files.items() if key[0] not in removed}
        self._directory_times, self._changed_directories = times, changed
        arrivals = []
        for entry in self._entries() if settled else ():
            state, key = _file_stamps(entry), _artifact_key(entry)
            if key[0] in settled and self._seen_files.get(key) != state:
                self._seen_files[key] = state
                arrivals.append(entry)
        return tuple(arrivals)

    def _entries(self) -> tuple[Artifact, ...]:
        try:
            return open_cache(self._root).entries
        except CacheError:  # does not exist yet, or was removed
            return ()


def _read_directory_times(root: Path) -> dict[str, int]:
    """Modification times of a directory and its subdirectories, as deep as caches are searched."""
    times: dict[str, int] = {}
    pending = [(str(root), 0)]
    while pending:
        directory, depth = pending.pop()
        with suppress(OSError):
            times[directory] = os.stat(directory).st_mtime_ns  # noqa: PTH116 - there are thousands, twice a second
            if depth < MAX_DEPTH:
                with os.scandir(directory) as listing:
                    pending += [(entry.path, depth + 1) for entry in listing if entry.is_dir(follow_symlinks=False)]
    return times


def _artifact_key(artifact: Artifact) -> tuple[str, str, str]:
    """The directory of the artifact's files, and what distinguishes it from other kernels there."""
    files = (file for file in artifact.files.values() if isinstance(file, Path))
    return next((str(file.parent) for file in files), ""), artifact.stem, artifact.hash


def _file_stamps(artifact: Artifact) -> FileStamps:
    stamps = []
    for suffix, file in sorted(artifact.files.items()):
        with suppress(OSError):
            if isinstance(file, Path):
                stamps.append((suffix, (stat := file.stat()).st_mtime_ns, stat.st_size))
    return tuple(stamps)

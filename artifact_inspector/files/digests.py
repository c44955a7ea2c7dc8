"""Digests of the contents of a kernel's files, and of this package's own code."""

from __future__ import annotations

import os
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import time_ns
from typing import NamedTuple

from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.reading import Stamp, read_stamped, stamp_of
from artifact_inspector.model.limits import LIMITS
from artifact_inspector.version import __version__

_LONGEST_STEP = 2 * 10**9
"""Nanoseconds of the coarsest file timestamp: two seconds on FAT."""


class State(NamedTuple):
    """The content of a kernel's files at the time of reading."""

    digest: bytes
    """Digest of every file and of its path in the cache."""
    stamp: int | None
    """Hash of all file stamps; None if a file was written just before."""

    def still_holds(self, artifact: Artifact) -> bool:
        """Whether the files are unchanged since."""
        if self.stamp is not None:
            return (
                hash(tuple(stamp_of(artifact.files[suffix]) for suffix in sorted(artifact.files)))
                == self.stamp
            )
        again = state_of_files(artifact)
        return again is not None and again.digest == self.digest


def state_of_files(artifact: Artifact) -> State | None:
    """The state of a kernel's files; None if one is missing or cannot be read.

    Includes the Triton version, which may come from a record beside the kernel, and the limits in force.
    """
    digest, stamps, began = blake2b(digest_size=32), list[Stamp](), time_ns()
    known_by = (artifact.directory, artifact.stem, artifact.hash, artifact.state, artifact.triton_version)
    bounds = [limit.most for limit in LIMITS]
    digest.update(repr((known_by, bounds)).encode(errors="surrogatepass"))
    for suffix in sorted(artifact.files):
        file = artifact.files[suffix]
        try:
            content, stamp = read_stamped(file)
        except OSError:
            return None
        digest.update(f"\0{suffix} {file.name!r} {len(content)}\0".encode(errors="surrogatepass"))
        digest.update(content)
        stamps.append(stamp)
    # File timestamps are coarse: a second write within one step may leave the stamp unchanged.
    settled = all(began - max(stamp[2:], default=0) > _LONGEST_STEP for stamp in stamps)
    return State(digest.digest(), hash(tuple(stamps)) if settled else None)


def size_of_files(artifact: Artifact) -> int:
    """Bytes of a kernel's files, without unreadable ones."""
    total = 0
    for file in artifact.files.values():
        try:
            total += file.stat().st_size if isinstance(file, Path) else len(file.content)
        except OSError:
            continue
    return total


@cache
def digest_of_package() -> bytes:
    """Digest of the version, and of the stamps of the package's own files."""
    digest = blake2b(__version__.encode(), digest_size=16)
    root = Path(__file__).parents[1]
    for directory, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(directory, name)  # noqa: PTH118 (there are hundreds)
                stat = os.stat(path)  # noqa: PTH116
                digest.update(f"{path[len(str(root)) :]} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return digest.digest()

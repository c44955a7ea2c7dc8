"""Digests of the contents of a kernel's files, and of this package's own code."""

from __future__ import annotations

import os
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import time_ns
from typing import NamedTuple

from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.reader import Stamp, file_stamp, read_with_stamp
from artifact_inspector.model.limits import LIMITS
from artifact_inspector.version import __version__

_MAX_TIMESTAMP_STEP = 2 * 10**9
"""Nanoseconds of the coarsest file timestamp: two seconds on FAT."""


class FilesSnapshot(NamedTuple):
    """The content of a kernel's files at the time of reading."""

    digest: bytes
    """Digest of every file, equal wherever the directory of the kernel is."""
    stamp: int | None
    """Hash of all file stamps; None if a file was written just before."""

    def is_current(self, artifact: Artifact) -> bool:
        """Whether the files are unchanged since."""
        if self.stamp is not None:
            return hash(tuple(file_stamp(artifact.files[suffix]) for suffix in sorted(artifact.files))) == self.stamp
        again = snapshot_files(artifact)
        return again is not None and again.digest == self.digest


def snapshot_files(artifact: Artifact) -> FilesSnapshot | None:
    """The state of a kernel's files; None if one is missing or cannot be read.

    Includes the Triton version, which may come from a record beside the kernel, and the limits in force.
    """
    digest, stamps, start_time = blake2b(digest_size=32), list[Stamp](), time_ns()
    identity = (artifact.stem, artifact.state, artifact.triton_version)
    bounds = [limit.value for limit in LIMITS]
    digest.update(repr((identity, artifact.other_kernels, bounds)).encode(errors="surrogatepass"))
    for suffix in sorted(artifact.files):
        file = artifact.files[suffix]
        try:
            content, stamp = read_with_stamp(file)
        except OSError:
            return None
        digest.update(f"\0{suffix} {file.name!r} {len(content)}\0".encode(errors="surrogatepass"))
        digest.update(content)
        stamps.append(stamp)
    # File timestamps are coarse: a second write within one step may leave the stamp unchanged.
    settled = all(start_time - max(stamp[2:], default=0) > _MAX_TIMESTAMP_STEP for stamp in stamps)
    return FilesSnapshot(digest.digest(), hash(tuple(stamps)) if settled else None)


def content_digest(artifact: Artifact) -> bytes | None:
    """Digest of a kernel's files and of its recorded constants; None if a file is unreadable."""
    snapshot = snapshot_files(artifact)
    constants = repr(sorted(artifact.constants.items(), key=str))
    return None if snapshot is None else snapshot.digest + constants.encode(errors="surrogatepass")


@cache
def package_digest(*, is_portable: bool = False, part: str = "") -> bytes:
    """Digest of the version, and of the stamps of the package's own files.

    Args:
        is_portable: digest their contents, which are equal on every machine with the same release.
        part: the folder of the package on which a value depends; empty for all of it.
    """
    digest = blake2b(__version__.encode(), digest_size=16)
    root = Path(__file__).parents[1] / part
    for directory, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                path = os.path.join(directory, name)  # noqa: PTH118 (there are hundreds)
                stat = os.stat(path)  # noqa: PTH116
                state = Path(path).read_bytes() if is_portable else f"{stat.st_mtime_ns}".encode()
                digest.update(f"{path[len(str(root)) :]} {stat.st_size}\n".encode() + state)
    return digest.digest()


def index_key(state: bytes, purpose: bytes = b"", *, is_portable: bool = False, part: str = "") -> bytes:
    """The key in the index of what this package's code computes from files.

    Args:
        state: digest of the files.
        purpose: separates values of different kinds; empty for facts.
        is_portable: the key is the same on every machine.
        part: the folder of the package that computes it; empty for the whole package.
    """
    return blake2b(package_digest(is_portable=is_portable, part=part) + purpose + state, digest_size=32).digest()

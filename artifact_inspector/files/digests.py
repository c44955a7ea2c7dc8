"""What tells one state of files from another: of a kernel's, and of this package's own."""

from __future__ import annotations

import os
from functools import cache
from hashlib import blake2b
from pathlib import Path

from artifact_inspector.files.cache import Artifact
from artifact_inspector.version import __version__

__all__ = ["digest_of_files", "digest_of_package", "size_of_files"]


def digest_of_files(artifact: Artifact) -> bytes | None:
    """Of every file of a kernel, and of where it lies in its cache; None where one cannot be read."""
    digest = blake2b(digest_size=32)
    known_by = (artifact.directory, artifact.stem, artifact.hash, artifact.state)
    digest.update(repr(known_by).encode(errors="surrogatepass"))
    for suffix in sorted(artifact.files):
        file = artifact.files[suffix]
        try:
            content = file.read_bytes()
        except OSError:
            return None
        digest.update(f"\0{suffix} {file.name!r} {len(content)}\0".encode(errors="surrogatepass"))
        digest.update(content)
    return digest.digest()


def size_of_files(artifact: Artifact) -> int:
    """Bytes of a kernel's files, those that cannot be read left out."""
    total = 0
    for file in artifact.files.values():
        try:
            total += file.stat().st_size if isinstance(file, Path) else len(file.content)
        except OSError:
            continue
    return total


@cache
def digest_of_package() -> bytes:
    """Of the version, and of what tells one state of the files of a working tree from the next."""
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

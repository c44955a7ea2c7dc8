"""What tells one state of files from another: of a kernel's, and of this package's own."""

from __future__ import annotations

import os
from functools import cache
from hashlib import blake2b
from pathlib import Path

from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.reading import read_content
from artifact_inspector.model.limits import LIMITS
from artifact_inspector.version import __version__


def digest_of_files(artifact: Artifact) -> bytes | None:
    """Of every file of a kernel, and of where it lies in its cache; None where one is not or cannot be read.

    The version of Triton may be told by a record beside the kernel, and the bounds say what is read of it.
    """
    digest = blake2b(digest_size=32)
    known_by = (artifact.directory, artifact.stem, artifact.hash, artifact.state, artifact.triton_version)
    bounds = [limit.most for limit in LIMITS]
    digest.update(repr((known_by, bounds)).encode(errors="surrogatepass"))
    for suffix in sorted(artifact.files):
        file = artifact.files[suffix]
        try:
            content = read_content(file)
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

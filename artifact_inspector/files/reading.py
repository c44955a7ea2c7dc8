"""Reads the files of a cache: bounded, and regular files only.

A cache is untrusted. It may hold a sparse file of a terabyte, a pipe without a writer, or a link into /proc
that never ends. No more bytes are read than the size that the file reports, up to a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.artifact import (
    BINARIES,
    REMARKS,
    TEXT_STAGES,
    Artifact,
    File,
    HeldFile,
    Problem,
    StageText,
)
from artifact_inspector.model.limits import MIB, Limit
from artifact_inspector.model.text import SourceText

Stamp = tuple[int, ...]
"""Stamp of a file: inode, size in bytes, times of modification and status change (ns)."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_content(file: File, most: int | Limit = MIB) -> bytes:
    """The content of a file.

    Args:
        most: maximum bytes, or the limit in MiB.

    Raises:
        OSError: it cannot be read, is not a regular file, or is too large; `strerror` says which.
    """
    if isinstance(file, HeldFile):
        return file.content
    return _read(file, most, whole=True)[0]


def read_stamped(file: File) -> tuple[bytes, Stamp]:
    """The content of a file, and its stamp when it was opened; errors as for `read_content`."""
    if isinstance(file, HeldFile):
        return file.content, ()
    content, found = _read(file, MIB, whole=True)
    return content, _stamp(found)


def stamp_of(file: File) -> Stamp | None:
    """A value that changes when the file is written to; None if it does not exist."""
    if isinstance(file, HeldFile):
        return ()
    try:
        return _stamp(file.stat())
    except OSError:
        return None


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_head(file: File, count: int) -> bytes:
    """The first bytes of a file; errors as for `read_content`."""
    return file.content[:count] if isinstance(file, HeldFile) else _read(file, count, whole=False)[0]


def _read(path: Path, bound: int | Limit, *, whole: bool) -> tuple[bytes, os.stat_result]:
    most = bound if isinstance(bound, int) else bound.most << 20
    descriptor = os.open(path, _FLAGS)  # a blocking open of a pipe without a writer would hang
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if whole and found.st_size > most:
            size = f"{-(-found.st_size >> 20)} MiB, the limit is {most >> 20} MiB"
            remedy = "" if isinstance(bound, int) else f": set {bound.switch} to read it"
            raise OSError(errno.EFBIG, size + remedy)
        # Files of reported size 0 (/proc, /sys/kernel/tracing) may block or never end.
        left = min(found.st_size, most)
        parts = []
        while left and (part := os.read(descriptor, left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts), found
    finally:
        os.close(descriptor)


def fault(error: OSError) -> str:
    """Why a file could not be read, as the end of a sentence."""
    if isinstance(error, FileNotFoundError):
        return "it was removed while the cache was read"
    return f"it cannot be read ({error.strerror or error})"


def read_named(path: Path) -> str:
    """The text of a file specified by the user: a baseline, a launch.

    Raises:
        OSError: as for `read_content`, or it is not text; `strerror` says which.
    """
    try:
        return read_content(path).decode()
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is not text") from None


def read_file(artifact: Artifact, suffix: str) -> bytes:
    """The content of one of a kernel's files.

    Raises:
        CacheError: the file was removed or cannot be read.
    """
    try:
        return read_content(artifact.files[suffix])
    except OSError as error:
        raise CacheError(f"{artifact.relative(suffix)}: {fault(error)}.") from None


def read_stage(artifact: Artifact, suffix: str) -> StageText:
    """The text of one stage; bytes that are not UTF-8 are replaced and reported.

    Raises:
        UsageError: the artifact has no such text.
        CacheError: the file was removed or cannot be read.
    """
    if suffix not in artifact.files or suffix not in TEXT_STAGES:
        raise UsageError(f"{artifact.display_name} has no .{suffix} text.")
    shown, content = artifact.relative(suffix), read_file(artifact, suffix)
    problem = None if content else Problem(shown, "the file is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        text = content.decode(errors="replace")
        problem = Problem(shown, f"byte {error.start} is not UTF-8; such bytes read as {chr(0xFFFD)}")
    if "\r" in text:  # a checkout on Windows may have changed line endings; line numbers stay the same
        text = text.replace("\r\n", "\n")
    return StageText(SourceText(shown, text), problem)


def read_binary(artifact: Artifact) -> tuple[str, bytes] | None:
    """The suffix and content of the compiled binary; None if there is none.

    Raises:
        CacheError: the file was removed or cannot be read.
    """
    suffix = next((suffix for suffix in sorted(BINARIES) if suffix in artifact.files), None)
    return None if suffix is None else (suffix, read_file(artifact, suffix))


def read_remarks(artifact: Artifact) -> str | None:
    """The compiler diagnostics as printed; None if they were not stored.

    Raises:
        CacheError: the file was removed or cannot be read.
    """
    if REMARKS not in artifact.files:
        return None
    return read_file(artifact, REMARKS).decode(errors="replace")

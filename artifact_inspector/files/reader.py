"""Reads the files of a cache: bounded, and regular files only.

A cache is untrusted. It may hold a sparse file of a terabyte, a pipe without a writer, or a link into /proc
that never ends. No more bytes are read than the size that the file reports, up to a limit.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.artifact import (
    BINARIES,
    REMARKS,
    TEXT_STAGES,
    Artifact,
    File,
    MemoryFile,
    Problem,
    StageText,
)
from artifact_inspector.files.scratch import is_own_scratch
from artifact_inspector.model.limits import FILE_MIB, InputLimit
from artifact_inspector.model.text import SourceText

Stamp = tuple[int, ...]
"""Stamp of a file: inode, size in bytes, times of modification and status change (ns)."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_NO_ACCESS_TIME = getattr(os, "O_NOATIME", 0)
"""Reading is no use of a cache: `cache prune --older-than` depends on that time."""
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_HAS_RELATIVE_OPEN = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
"""False on Windows, where a path is resolved and then opened."""
_allowed_directories: ContextVar[tuple[tuple[Path, int], ...] | None] = ContextVar("_allowed_directories", default=None)
"""Directories that may be read, with their open descriptors; None for all."""


def read_content(file: File, limit: int | InputLimit = FILE_MIB, *, follow_links: bool = True) -> bytes:
    """The content of a file.

    Args:
        limit: maximum bytes, or the limit in MiB.
        follow_links: whether the file may be a link; a record may not, so that it discloses no other file.

    Raises:
        OSError: it cannot be read, is not a regular file, or is too large; `strerror` says which.
    """
    if isinstance(file, MemoryFile):
        return file.content
    return _read_regular_file(file, limit, is_complete=True, flags=0 if follow_links else _NO_FOLLOW)[0]


def read_own_content(path: Path, limit: int) -> bytes:
    """The content of a file that this program wrote to its own cache; errors as for `read_content`."""
    token = _allowed_directories.set(None)
    try:
        return read_content(path, limit)
    finally:
        _allowed_directories.reset(token)


def read_with_stamp(file: File) -> tuple[bytes, Stamp]:
    """The content of a file, and its stamp when it was opened; errors as for `read_content`."""
    if isinstance(file, MemoryFile):
        return file.content, ()
    content, stat_result = _read_regular_file(file, FILE_MIB, is_complete=True)
    return content, _stat_stamp(stat_result)


def file_stamp(file: File) -> Stamp | None:
    """A value that changes when the file is written to; None if it does not exist."""
    if isinstance(file, MemoryFile):
        return ()
    try:
        return _stat_stamp(file.stat())
    except OSError:
        return None


def _stat_stamp(stat_result: os.stat_result) -> Stamp:
    return stat_result.st_ino, stat_result.st_size, stat_result.st_mtime_ns, stat_result.st_ctime_ns


def read_head(file: File, count: int) -> bytes:
    """The first bytes of a file; errors as for `read_content`."""
    if isinstance(file, MemoryFile):
        return file.content[:count]
    return _read_regular_file(file, count, is_complete=False)[0]


def open_regular_file(path: Path, flags: int = 0) -> tuple[int, os.stat_result]:
    """A descriptor of a regular file that may be read, and its state; errors as for `read_content`."""
    try:  # a blocking open of a pipe without a writer would hang
        descriptor = _open(path, _FLAGS | _NO_ACCESS_TIME | flags)
    except PermissionError:  # only the owner may leave the time of the last use as it is
        descriptor = _open(path, _FLAGS | flags)
    try:
        stat_result = os.fstat(descriptor)
        if not stat.S_ISREG(stat_result.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")  # noqa: TRY301
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, stat_result


def _read_regular_file(
    path: Path, bound: int | InputLimit, *, is_complete: bool, flags: int = 0
) -> tuple[bytes, os.stat_result]:
    max_bytes = bound if isinstance(bound, int) else bound.value << 20
    descriptor, stat_result = open_regular_file(path, flags)
    try:
        if is_complete and stat_result.st_size > max_bytes:
            size = f"{-(-stat_result.st_size >> 20)} MiB, the limit is {max_bytes >> 20} MiB"
            remedy = "" if isinstance(bound, int) else f": set {bound.variable} to read it"
            raise OSError(errno.EFBIG, size + remedy)
        # Files of reported size 0 (/proc, /sys/kernel/tracing) may block or never end.
        remaining = min(stat_result.st_size, max_bytes)
        chunks = []
        while remaining and (chunk := os.read(descriptor, remaining)):
            chunks.append(chunk)
            remaining -= len(chunk)
        return b"".join(chunks), stat_result
    finally:
        os.close(descriptor)


@contextmanager
def restrict_reading(directories: Iterable[Path]) -> Iterator[None]:
    """In the block, files are opened from these directories only, which stay open, whatever links lead elsewhere.

    Temporary files of this process may be read too.

    Args:
        directories: absolute, without links.
    """
    with ExitStack() as stack:
        roots = []
        for directory in directories:
            with suppress(OSError):  # a root that does not exist holds nothing to read
                roots.append((directory, _open_directory(directory)))
                stack.callback(os.close, roots[-1][1])
        token = _allowed_directories.set(tuple(roots))
        stack.callback(_allowed_directories.reset, token)
        yield


@contextmanager
def scan_directory(directory: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of a directory, which may be used in the block only; errors as for `read_content`."""
    if _allowed_directories.get() is None or not _HAS_RELATIVE_OPEN:
        with os.scandir(directory) as listing:
            yield listing
        return
    descriptor = _open(directory, os.O_RDONLY | os.O_CLOEXEC | _DIRECTORY)
    try:
        with os.scandir(descriptor) as listing:
            yield listing
    finally:
        os.close(descriptor)


def _open(path: Path, flags: int) -> int:
    """Open a path: from one of the directories that may be read, if there are such, and then without any link.

    Links are resolved before. One that is created later ends the way to the file, so that nothing else is opened.
    """
    roots = _allowed_directories.get()
    if roots is None:
        return os.open(path, flags)
    # a file that may not be a link is opened by its own name
    real = Path(os.path.realpath(path.parent), path.name) if flags & _NO_FOLLOW else Path(os.path.realpath(path))
    for root, descriptor in roots:
        if real.is_relative_to(root):
            return _open_below(descriptor, root, real, flags)
    if not is_own_scratch(real):
        raise OSError(errno.EACCES, "outside of the directories that may be read")
    root = Path(os.path.realpath(tempfile.gettempdir()))
    descriptor = _open_directory(root)
    try:
        return _open_below(descriptor, root, real, flags)
    finally:
        os.close(descriptor)


def _open_below(directory: int, root: Path, path: Path, flags: int) -> int:
    """Open a path below an open directory; no name on the way may be a link."""
    if not _HAS_RELATIVE_OPEN:
        return os.open(path, flags | _NO_FOLLOW)
    *parents, name = path.relative_to(root).parts or (".",)
    with ExitStack() as stack:
        for parent in parents:
            directory = _open_directory(parent, directory)
            stack.callback(os.close, directory)
        return os.open(name, flags | _NO_FOLLOW, dir_fd=directory)


def _open_directory(path: str | Path, directory: int | None = None) -> int:
    if not _HAS_RELATIVE_OPEN:
        return os.open(os.devnull, os.O_RDONLY)
    # a directory on the way need not be readable, only searchable
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC | _DIRECTORY | _NO_FOLLOW
    return os.open(path, flags, dir_fd=directory)


def describe_error(error: OSError) -> str:
    """Why a file could not be read, as the end of a sentence."""
    if isinstance(error, FileNotFoundError):
        return "it was removed while the cache was read"
    return f"it cannot be read ({error.strerror or error})"


def read_user_text(path: Path) -> str:
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
        raise CacheError(f"{artifact.display_path(suffix)}: {describe_error(error)}.") from None


def read_stage(artifact: Artifact, suffix: str) -> StageText:
    """The text of one stage; bytes that are not UTF-8 are replaced and reported.

    Raises:
        UsageError: the artifact has no such text.
        CacheError: the file was removed or cannot be read.
    """
    if suffix not in artifact.files or suffix not in TEXT_STAGES:
        raise UsageError(f"{artifact.display_name} has no .{suffix} text.")
    display_path, content = artifact.display_path(suffix), read_file(artifact, suffix)
    problem = None if content else Problem(display_path, "the file is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        text = content.decode(errors="replace")
        problem = Problem(display_path, f"byte {error.start} is not UTF-8; such bytes read as {chr(0xFFFD)}")
    if "\r" in text:  # a checkout on Windows may have changed line endings; line numbers stay the same
        text = text.replace("\r\n", "\n")
    return StageText(SourceText(display_path, text), problem)


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

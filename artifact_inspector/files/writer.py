"""Atomic writes: a file is written completely or not at all; the user's cache directory."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.scratch import prefix_beside


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """Replace a file's text; the old file stays until the new one is complete, or if writing fails.

    Args:
        mode: permissions; None for those of the old file, or the default.

    Raises:
        CacheError: it cannot be written.
    """
    write_bytes(path, text.encode(), mode)


def write_bytes(path: Path, content: bytes, mode: int | None = None) -> None:
    """Replace a file's bytes, as `write_text`."""
    write_pieces(path, (content,), mode)


def write_pieces(path: Path, pieces: Iterable[bytes], mode: int | None = None) -> None:
    """Replace a file's bytes by those of some pieces, as `write_text`; if making one fails, the old file stays.

    Anything but a regular file (a pipe, `/dev/stdout`) is written in place.
    """
    try:
        _replace(Path(os.path.realpath(path)), pieces, mode)
    except OSError as error:
        raise CacheError(f"{path} could not be written: {error.strerror or error}.") from None


def _replace(path: Path, pieces: Iterable[bytes], permissions: int | None) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as stream:
            stream.writelines(pieces)
        return
    if mode is not None and not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied")
    descriptor, temporary = tempfile.mkstemp(prefix=prefix_beside(path), dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(descriptor)
        if permissions is None:
            permissions = _default_mode() if mode is None else stat.S_IMODE(mode)
        os.chmod(temporary, permissions)  # noqa: PTH101
        os.replace(temporary, path)  # noqa: PTH105 - mkstemp returns a string
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _default_mode() -> int:
    """The permissions of a new file; the mask can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def user_cache() -> Path | None:
    """The tool's directory in the user's cache directory, not created yet; None without a home directory.

    Source: XDG Base Directory Specification; a relative path must be ignored.
    """
    named = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        root = Path(named) if named and Path(named).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "artifact-inspector"


def is_disabled(variable: str) -> bool:
    """Whether an environment variable disables a cache for reading and writing."""
    return os.environ.get(variable, "").lower() == "off"


def write_private(path: Path, content: bytes) -> None:
    """Write a private file; ignores a directory that cannot be written."""
    with contextlib.suppress(OSError, CacheError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(path, content)

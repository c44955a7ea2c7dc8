"""Copies what is no local path, standard input or an fsspec address, into a temporary directory."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import sanitize
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.model.limits import ARCHIVE_MEMBERS, ARCHIVE_MIB

STANDARD_INPUT = "-"
_ADDRESS = re.compile(r"([a-z][a-z0-9+]+(?:::[a-z0-9+]+)*):/+(?=[^/])")
"""A path made of an address has lost a slash: `s3:/bucket/key`."""


def address_of(path: Path) -> str | None:
    """The address of something elsewhere, or `-`; None for a local path."""
    text = str(path)
    if text == STANDARD_INPUT:
        return text
    match = _ADDRESS.match(text)
    if match is None:
        return None
    return f"{match[1]}://{'/' if match[1] in ('file', 'local') else ''}{text[match.end() :]}"


_copies: dict[str, tuple[Path, tempfile.TemporaryDirectory[str]]] = {}
"""Address → its copy, and the temporary directory that has it until this process ends."""


def fetch(address: str) -> Path:
    """A local copy of a file or a directory, made once in a run.

    Raises:
        CacheError: it cannot be copied; the remedy says what is needed.
    """
    if address not in _copies:
        scratch = scratch_directory()
        try:
            read = _read_input if address == STANDARD_INPUT else partial(_fetch, address)
            _copies[address] = read(Path(scratch.name)), scratch
        except OSError as error:
            raise CacheError(f"{sanitize(address)} cannot be read: {error.strerror or error}.") from None
    return _copies[address][0]


def _read_input(directory: Path) -> Path:
    path = _copy(sys.stdin.buffer, directory / "stdin", [ARCHIVE_MIB.value << 20])
    with path.open("rb") as file:
        is_text = file.read(64).lstrip().startswith(b"{")
    return path.rename(path.with_suffix(".ndjson")) if is_text else path


def open_address(address: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path there.

    Raises:
        CacheError: a package is missing, or the address is wrong.
    """
    try:
        import fsspec
    except ImportError:
        remedy = "Run pip install 'artifact-inspector[remote]', or copy it here first."
        raise CacheError(f"{sanitize(address)} needs the package fsspec.", remedy) from None
    with naming_errors(address):
        system, path = fsspec.core.url_to_fs(address)
    return system, str(path)


@contextmanager
def naming_errors(address: str) -> Iterator[None]:
    """Report what a file system of fsspec raises: each has exceptions of its own, as for missing credentials.

    Raises:
        CacheError: instead of any of them.
    """
    try:
        yield
    except CacheError:
        raise
    except Exception as error:  # noqa: BLE001 - every file system has its own
        text = sanitize(error.strerror if isinstance(error, OSError) and error.strerror else str(error))
        raise CacheError(
            f"{sanitize(address)} cannot be read: {text[:200].rstrip('.') or type(error).__name__}."
        ) from None


def _fetch(address: str, directory: Path) -> Path:
    system, path = open_address(address)
    with naming_errors(address):
        return _copy_all(address, system, path, directory)


def _copy_all(address: str, system: Any, path: str, directory: Path) -> Path:
    names = [path] if system.isfile(path) else sorted(system.find(path))
    if not names:
        raise CacheError(f"There is nothing at {sanitize(address)}.", "Give an archive, a trace or a cache directory.")
    if len(names) > ARCHIVE_MEMBERS.value:
        raise CacheError(
            f"{sanitize(address)} has {len(names):,} files.", f"Set {ARCHIVE_MEMBERS.variable} to copy them."
        )
    left = [ARCHIVE_MIB.value << 20]
    root = directory / (sanitize(PurePosixPath(path).name) or "cache")
    for name in names:
        relative = PurePosixPath(name).relative_to(path)
        if ".." in relative.parts:
            continue
        target = root.joinpath(*map(sanitize, relative.parts))
        target.parent.mkdir(parents=True, exist_ok=True)
        with system.open(name, "rb") as stream:
            _copy(stream, target, left)
    return root


def _copy(stream: IO[bytes] | Any, target: Path, left: list[int]) -> Path:
    """Copy within the bytes that are left."""
    with target.open("wb") as file:
        while chunk := stream.read(1 << 20):
            left[0] -= len(chunk)
            if left[0] < 0:
                raise OSError(27, f"more than {ARCHIVE_MIB.value:,} MiB: set {ARCHIVE_MIB.variable} to copy it")
            file.write(chunk)
    return target

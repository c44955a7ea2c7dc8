"""Unpacks archives, compressed files and traces of kernels into a private temporary directory.

An archive is untrusted. Each layer is copied to a file before it is read, so that its size is known and no
reader rewinds a compressed stream. Members are written one by one under checked names: no link, device, absolute
path or `..` is followed or made. Bytes, members and nesting are bounded; where a bound ends the unpacking, the
members up to there are kept, and the caller learns what is missing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from artifact_inspector.errors import CacheError
from artifact_inspector.files.ahead_of_time import is_c_source, write_binary
from artifact_inspector.files.artifact import SUFFIXES, Problem, sanitize
from artifact_inspector.files.database_cache import MAGIC, write_entries
from artifact_inspector.files.image import DOCUMENT_BYTES, FIRST_MEMBER, LAYOUT, LayerFilter, image_layers
from artifact_inspector.files.mlir_tests import SUFFIX as MLIR_SUFFIX
from artifact_inspector.files.mlir_tests import write_functions
from artifact_inspector.files.reader import Stamp, file_stamp, open_regular_file, read_content
from artifact_inspector.files.records import MANIFEST, MAX_RECORD_BYTES
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.files.traces import TraceWriter, is_trace
from artifact_inspector.model.limits import ARCHIVE_LAYERS, ARCHIVE_MEMBERS, ARCHIVE_MIB, ARCHIVE_RATIO, FILE_MIB
from artifact_inspector.model.string_enum import StringEnum

_CHUNK = 1 << 20
_FREE_BYTES = 64 << 20
"""Bytes that any archive may unpack to, whatever its ratio."""
_MAX_READ = 48 << 20
"""Largest single read by an archive module: a longer central directory or header would take a GiB of memory."""
_MAX_PATH_PARTS = 64
_MAX_IMAGE_MEMBERS = 10_000
_HEAD_BYTES = 512
_ERRORS = (
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError, MemoryError, OverflowError, struct.error,
    zlib.error, zipfile.BadZipFile, tarfile.TarError,
)  # fmt: skip


class ContainerKind(StringEnum):
    """What holds the files of kernels."""

    ZIP = "zip"
    TAR = "tar"
    GZIP = "gzip"
    ZSTD = "zstd"
    TRACE = "trace"
    MLIR = "MLIR file"
    DATABASE = "SQLite cache"
    C_SOURCE = "C file"


class Unpacked(NamedTuple):
    """The files of a container."""

    root: Path
    problems: tuple[Problem, ...]
    """Members that were not unpacked, and damage; paths are those in the container."""
    scratch: tempfile.TemporaryDirectory[str]
    """Removed with this value."""


class _BoundError(Exception):
    """A bound that ends the unpacking."""


def container_kind(path: Path) -> ContainerKind | None:
    """The kind of a file by its first bytes; None if it is no container or cannot be read."""
    if path.suffix.removeprefix(".") in SUFFIXES:
        return None
    try:
        with _opened(path) as stream:
            return _kind_of(stream.read(_HEAD_BYTES), path.name)
    except OSError:
        return None


def unpack(path: Path, name: str | None = None, members: tuple[str, ...] = ()) -> Unpacked:
    """The files of an archive, an image, a compressed file or a trace; unpacked once while the file stays the same.

    Args:
        path: a file, the directory of an OCI image, or that of `members`.
        name: of the container for people; its path by default.
        members: the containers in a directory, if the path is one; within one budget.

    Raises:
        CacheError: it cannot be read, or nothing could be unpacked.
    """
    paths = [path / member for member in members] or [path]
    return _unpack(path.absolute(), members, tuple(map(file_stamp, paths)), name or sanitize(str(path)))


@lru_cache(maxsize=16)
def _unpack(path: Path, members: tuple[str, ...], _stamps: tuple[Stamp | None, ...], name: str) -> Unpacked:
    scratch = scratch_directory()
    base = sanitize(path.name).split(".")[0] or "archive"
    root = Path(scratch.name, base)
    paths = [path / member for member in members] or [path]
    try:
        root.mkdir()
        unpacker = _Unpacker(
            sum(x.stat().st_size for path in paths for x in (path.glob("blobs/*/*") if path.is_dir() else [path])),
            Path(scratch.name),
        )
        if path.is_dir() and not members:
            unpacker.expand_image(lambda member: _opened(path / member), root, 1, "")
            paths = []
        for file in paths:
            into = root / sanitize(str(file.relative_to(path)))
            into.mkdir(parents=True, exist_ok=True)
            with _opened(file) as stream:
                unpacker.expand(stream, file.name, into, 1, "" if file == path else str(file.relative_to(path)))
        if members:
            _merge_launches(root)
    except OSError as error:
        raise CacheError(f"{name} cannot be unpacked: {error.strerror or error}.", _REMEDY) from None
    except _BoundError as error:
        unpacker.problems.append(Problem(sanitize(path.name), f"unpacking stopped: {error}"))
    if unpacker.problems and not any(root.iterdir()):
        raise CacheError(f"{name}: {unpacker.problems[0].problem} ({unpacker.problems[0].path}).", _REMEDY)
    return Unpacked(root if members else _cache_root(root), tuple(unpacker.problems), scratch)


def _merge_launches(root: Path) -> None:
    """Write the launches of all records below a directory into one record there."""
    rows: list[object] = []
    for record in sorted(root.rglob(MANIFEST)):
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            rows += json.loads(read_content(record, MAX_RECORD_BYTES))["launches"]
    if rows and not (root / MANIFEST).exists():
        (root / MANIFEST).write_text(json.dumps({"schema_version": 1, "launches": rows}), encoding="utf-8")


_REMEDY = "Check the file with zip -T, tar -t or gzip -t, or give a directory."


def _cache_root(root: Path) -> Path:
    """The directory itself, or the cache that it consists of: `tar czf x.tgz triton-cache` has one more level."""
    children = list(root.iterdir())
    while len(children) == 1 and children[0].is_dir():
        grandchildren = list(children[0].iterdir())
        if any(file.suffix.removeprefix(".") in SUFFIXES and file.stem != "inspect-kernel" for file in grandchildren):
            break  # an entry
        root, children = children[0], grandchildren
    return root


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with os.fdopen(open_regular_file(path)[0], "rb") as stream:
        yield stream


def _kind_of(head: bytes, name: str) -> ContainerKind | None:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ContainerKind.ZIP
    if head.startswith(b"\x1f\x8b"):
        return ContainerKind.GZIP
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return ContainerKind.ZSTD
    if head.startswith(MAGIC):
        return ContainerKind.DATABASE
    if head[257:262] == b"ustar" or name.endswith(".tar"):
        return ContainerKind.TAR
    if name.endswith(MLIR_SUFFIX):
        return ContainerKind.MLIR
    if is_c_source(head, name):
        return ContainerKind.C_SOURCE
    return ContainerKind.TRACE if is_trace(head, name) else None


class _BoundedFile:
    """A file for the archive modules, which would read any length that a header states."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(min(size, _MAX_READ + 1) if size >= 0 else _MAX_READ + 1)
        if len(content) > _MAX_READ:
            raise tarfile.ReadError(f"a header of more than {_MAX_READ >> 20} MiB")
        return content


class _Unpacker:
    """Unpacks one container with everything in it, within one budget."""

    def __init__(self, packed_bytes: int, scratch: Path) -> None:
        limit = ARCHIVE_MIB.value << 20
        self._max_bytes = min(limit, max(_FREE_BYTES, ARCHIVE_RATIO.value * packed_bytes))
        self._bound = ARCHIVE_MIB if self._max_bytes == limit else ARCHIVE_RATIO
        self._bytes_left, self._members_left = self._max_bytes, ARCHIVE_MEMBERS.value
        self._scratch = scratch
        self._layer: LayerFilter | None = None
        """Applies to the next tar."""
        self.problems: list[Problem] = []

    def expand(self, stream: IO[bytes], name: str, into: Path, depth: int, display: str = "") -> None:
        """Write the members of a container into a directory.

        Args:
            name: file name of the container.
            display: path of the container inside of the outermost one; empty for that.
        """
        kind = _kind_of(stream.read(_HEAD_BYTES), name)
        stream.seek(0)
        if depth > ARCHIVE_LAYERS.value:
            self._report(display or name, f"not unpacked: more than {ARCHIVE_LAYERS.value} containers in each other")
            return
        try:
            if kind in (ContainerKind.GZIP, ContainerKind.ZSTD):
                self._decompress(stream, kind, name, into, depth, display)
            elif kind is ContainerKind.ZIP:
                self._expand_zip(stream, into, depth, display)
            elif kind is ContainerKind.TAR:
                self._expand_tar(stream, into, depth, display)
            elif kind is ContainerKind.TRACE:
                self._expand_trace(stream, name, into, display)
            elif kind in (ContainerKind.MLIR, ContainerKind.C_SOURCE):
                self._expand_text(stream, kind, name, into, display)
            elif kind is ContainerKind.DATABASE:
                self._expand_database(stream, name, into, display)
        except _ERRORS as error:
            self._report(display or name, f"the {kind} is damaged or incomplete: {_reason(error)}")

    def _decompress(
        self, stream: IO[bytes], kind: ContainerKind, name: str, into: Path, depth: int, display: str
    ) -> None:
        """Decompress into a file, and read that in turn."""
        stem, _, suffix = name.rpartition(".")
        inner_name = f"{stem}.tar" if suffix == "tgz" else stem if suffix in ("gz", "zst", "zstd") else name
        with tempfile.TemporaryFile(dir=self._scratch) as layer:
            try:
                with _decompressor(stream, kind) as plain:
                    self._copy(plain, layer, self._max_bytes)
            except _ERRORS as error:
                self._report(display or name, f"the {kind} is damaged or incomplete: {_reason(error)}")
            layer.seek(0)
            head = layer.read(_HEAD_BYTES)
            layer.seek(0)
            if _kind_of(head, inner_name) is not None:
                self.expand(layer, inner_name, into, depth + 1, display)
            elif head:
                self._write(layer, (sanitize(inner_name) or "file",), into, depth, display)

    def _expand_zip(self, stream: IO[bytes], into: Path, depth: int, display: str) -> None:
        with zipfile.ZipFile(_BoundedFile(stream)) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                if info.is_dir():
                    continue
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                    self._report(info.filename, _SPECIAL)
                    continue
                with self._member(info.filename), archive.open(info) as content:
                    self._write_member(content, info.filename, into, depth, display)

    def _expand_tar(self, stream: IO[bytes], into: Path, depth: int, display: str) -> None:
        layer, self._layer = self._layer, None
        if layer is None and self._expand_tar_image(stream, into, depth, display):
            return
        stream.seek(0)
        with tarfile.open(fileobj=_BoundedFile(stream), mode="r:") as archive:  # type: ignore[call-overload]
            while (info := archive.next()) is not None:
                archive.members = []  # kept for every member otherwise
                if info.isdir() or (layer is not None and not layer.is_visible(info.name)):
                    continue
                if not info.isreg() or info.sparse is not None:
                    self._report(info.name, _SPECIAL)
                    continue
                with self._member(info.name):
                    content = archive.extractfile(info)
                    assert content is not None
                    self._write_member(content, info.name, into, depth, display, info.size)

    def _expand_tar_image(self, stream: IO[bytes], into: Path, depth: int, display: str) -> bool:
        """Unpack the layers if this is the tar of an image."""
        with tarfile.open(fileobj=_BoundedFile(stream), mode="r:") as archive:  # type: ignore[call-overload]
            members: dict[str, tarfile.TarInfo] = {}
            while (info := archive.next()) is not None and len(members) < _MAX_IMAGE_MEMBERS:
                if not members and not FIRST_MEMBER.fullmatch(info.name):
                    return False
                members[info.name.removeprefix("./")] = info

            @contextmanager
            def opened(name: str) -> Iterator[IO[bytes]]:
                content = archive.extractfile(members[name]) if members[name].isreg() else None
                if content is None:
                    raise ValueError(f"{name} is a link or a special file")
                yield content

            if LAYOUT in members or ("manifest.json" in members and any(name.endswith(".tar") for name in members)):
                self.expand_image(opened, into, depth, display)
                return True
        return False

    def expand_image(
        self, opened: Callable[[str], AbstractContextManager[IO[bytes]]], into: Path, depth: int, display: str
    ) -> None:
        """Write the files of kernels that an image has.

        Args:
            opened: opens a member of it.
        """

        def read(name: str) -> bytes:
            with opened(name) as document:
                return document.read(DOCUMENT_BYTES)

        try:
            images = image_layers(read)
        except (*_ERRORS, LookupError, TypeError, AttributeError, RecursionError) as error:
            self._report(display or LAYOUT, f"the image is damaged: {_reason(error)}")
            return
        for number, layers in enumerate(images, 1):
            target, layer_filter = into / f"image{number}" if len(images) > 1 else into, LayerFilter()
            for name in reversed(layers):
                layer_filter.begin_layer()
                try:
                    if _safe_parts(name) is None:
                        raise ValueError("its name leads out of the image")
                    with opened(name) as layer:
                        algorithm, _, digest = name.removeprefix("blobs/").partition("/")
                        if name.startswith("blobs/") and _file_digest(layer, algorithm) != digest:
                            self._report(name, "the layer is damaged: its content has another digest")
                        self._layer = layer_filter
                        self.expand(layer, "layer.tar", target, depth + 1, name)
                except (*_ERRORS, LookupError) as error:
                    self._report(name, f"the layer is missing or damaged: {_reason(error)}")
                self._layer = None

    def _expand_trace(self, stream: IO[bytes], name: str, into: Path, display: str) -> None:
        self._members_left -= 1
        writer = TraceWriter(into)
        for problem in writer.convert(stream, self._spend):
            self._report(display or name, problem)

    def _expand_database(self, stream: IO[bytes], name: str, into: Path, display: str) -> None:
        with tempfile.NamedTemporaryFile(dir=self._scratch) as copy:  # SQLite would open what takes the name's place
            self._copy(stream, copy, self._max_bytes)
            copy.flush()
            for problem in write_entries(Path(copy.name), into, self._spend):
                self._report(display or name, problem)

    def _expand_text(self, stream: IO[bytes], kind: ContainerKind, name: str, into: Path, display: str) -> None:
        content = stream.read((FILE_MIB.value << 20) + 1)
        if len(content) > FILE_MIB.value << 20:
            self._report(display or name, f"more than {FILE_MIB.value} MiB: set {FILE_MIB.variable} to read it")
        elif kind is ContainerKind.C_SOURCE:
            if not write_binary(content.decode(errors="replace"), name, into, self._spend):
                self._report(display or name, "no `CUBIN_NAME` or `HSACO_NAME`: triton.tools.compile did not write it")
        elif not write_functions(content.decode(errors="replace"), into, self._spend):
            self._report(display or name, "no `tt.func` with a body: it holds no Triton kernel")

    @contextmanager
    def _member(self, name: str) -> Iterator[None]:
        """Report an error of one member; the next ones are still unpacked."""
        self._members_left -= 1
        if self._members_left < 0:
            raise _BoundError(
                f"more than {ARCHIVE_MEMBERS.value:,} members: set {ARCHIVE_MEMBERS.variable} to unpack them"
            )
        try:
            yield
        except _ERRORS as error:
            self._report(name, f"not unpacked: {_reason(error)}")

    def _write_member(
        self, content: IO[bytes], name: str, into: Path, depth: int, display: str, size: int | None = None
    ) -> None:
        parts = _safe_parts(name)
        if parts is None:
            self._report(name, "not unpacked: its name leads out of the archive")
            return
        self._write(content, parts, into, depth, display, size)

    def _write(
        self, content: IO[bytes], parts: tuple[str, ...], into: Path, depth: int, display: str, size: int | None = None
    ) -> None:
        """Write one file, and unpack it in place if it is a container."""
        path = into.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                try:
                    written = self._copy(content, file)
                except BaseException:
                    path.unlink()  # half a file would be read as a damaged kernel
                    raise
        except FileExistsError:
            self._report("/".join(parts), "not unpacked: a second file of this name")
            return
        if size is not None and written < size:
            self._report("/".join(parts), f"incomplete: {written:,} of {size:,} bytes")
        if container_kind(path) is not None:
            inner = path.with_name(f"{path.name}.contents")
            inner.mkdir()
            with path.open("rb") as nested:
                self.expand(nested, path.name, inner, depth + 1, "/".join((*([display] if display else []), *parts)))
            path.unlink()

    def _copy(self, source: Any, target: IO[bytes], limit: int | None = None) -> int:
        """Copy within the budget, or within a limit of one layer."""
        total = 0
        while chunk := source.read(_CHUNK):
            total += len(chunk)
            if limit is None:
                self._spend(len(chunk))
            elif total > limit:
                raise self._bytes_error()
            target.write(chunk)
        return total

    def _spend(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise self._bytes_error()

    def _bytes_error(self) -> _BoundError:
        return _BoundError(
            f"more than {self._max_bytes >> 20:,} MiB unpacked: set {self._bound.variable} to unpack more"
        )

    def _report(self, name: str, sentence: str) -> None:
        if len(self.problems) < 1000:
            self.problems.append(Problem(sanitize(name), sentence))


def _file_digest(stream: IO[bytes], algorithm: str) -> str:
    digest = hashlib.new(algorithm)
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    stream.seek(0)
    return digest.hexdigest()


_SPECIAL = "not unpacked: a link, a device or another special file"


@contextmanager
def _decompressor(stream: IO[bytes], kind: ContainerKind) -> Iterator[Any]:
    if kind is ContainerKind.GZIP:
        with gzip.GzipFile(fileobj=stream) as plain:
            yield plain
        return
    try:
        import zstandard
    except ImportError:
        raise CacheError("A zstd file needs the package zstandard.", "pip install 'artifact-inspector[zstd]'") from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True) as plain:
            yield plain
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


def _safe_parts(name: str) -> tuple[str, ...] | None:
    """The parts of a member's path; None if it leads elsewhere or cannot be written."""
    path = name.replace("\\", "/")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    is_unsafe = path.startswith("/") or ".." in parts or (parts and parts[0][1:2] == ":") or "\0" in path
    return None if is_unsafe or not parts or len(parts) > _MAX_PATH_PARTS else tuple(map(sanitize, parts))


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return sanitize(text or type(error).__name__)[:200]

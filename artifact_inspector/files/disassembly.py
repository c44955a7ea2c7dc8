"""Disassembles cubins with nvdisasm.

The text is cached in the user's cache directory, so that later reads need no tool.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.elf import refuse_repeated_contents
from artifact_inspector.files.merged_cubins import HEADER_BYTES, merge_cubins, merge_key, normalize, split_functions
from artifact_inspector.files.reader import read_content, read_head, read_own_content
from artifact_inspector.files.tools import WHEEL_DIRECTORIES, find_on_path, package_directories, private_copy, run_tool
from artifact_inspector.files.writer import is_disabled, user_cache, write_private
from artifact_inspector.hardware.targets import parse_stage_target

CACHE_VARIABLE = "ARTIFACT_INSPECTOR_SASS_CACHE"
"""Environment variable; `off` disables the cache of disassemblies."""

MAX_BINARY_BYTES = 64 << 20
"""Maximum bytes of a cubin or an hsaco."""
MAX_CACHE_BYTES = 256 << 20
"""Maximum bytes of all cached texts, compressed."""
_MOST_MERGED = 16
"""Cubins by one start of the tool."""

_BACKEND = {"cubin": "cuda", "hsaco": "hip"}
_NAME = "nvdisasm"
_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")
_INDIRECT = re.compile(r"\*/\s+(?:@\S+\s+)?(?:BRXU?|JMXU?) ")
_REMEDY = f"Specify an {_NAME} with --nvdisasm PATH, or install Triton or the CUDA toolkit, which include it."


class Disassembler(NamedTuple):
    """A disassembler with a known version."""

    path: Path
    version: str
    """As the tool reports it: `13.1.80`."""

    @property
    def release(self) -> tuple[int, int]:
        """Its CUDA toolkit release: (13, 1)."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


def find_disassembler(explicit: Path | None = None) -> Disassembler | None:
    """The first `nvdisasm` of: the given path, the installed Triton, PATH, the CUDA toolkit.

    Raises:
        UsageError: the given path is not a working nvdisasm.
    """
    if explicit is not None:
        tool = _probe(explicit.absolute())
        if tool is None:
            raise UsageError(f"{explicit} is not a working {_NAME}.", "Specify the path of the program itself.")
        return tool
    return next((tool for path in _candidate_paths() if (tool := _probe(path)) is not None), None)


def _candidate_paths() -> list[Path]:
    paths = [root / directory / _NAME for root in package_directories("triton") for directory in WHEEL_DIRECTORIES]
    on_path = find_on_path([_NAME])
    homes = [Path(os.environ.get(name, "")) for name in ("CUDA_HOME", "CUDA_PATH")]
    found_paths = [] if on_path is None else [on_path]
    return paths + found_paths + [home / "bin" / _NAME for home in homes if home.is_absolute()]


@lru_cache(maxsize=32)
def _probe(path: Path) -> Disassembler | None:
    """The tool at a path; None if there is none that reports its version."""
    if not path.is_file():
        return None
    try:
        _, output = run_tool([str(path), "--version"], 4096)
    except CacheError:
        return None
    version = _VERSION.search(output.decode(errors="replace")) if b"disassembler" in output else None
    return None if version is None else Disassembler(path.resolve(), version[1])


def disassemble(cubin: bytes, tool: Disassembler | None) -> str:
    """The disassembly of a cubin, with lines, inlined calls and encodings.

    Raises:
        CacheError: there is no tool, the content is not a cubin, or the tool rejects it.
    """
    if tool is None:
        raise CacheError(f"not disassembled: no {_NAME} was found.", _REMEDY)
    arch = binary_arch("cubin", cubin)
    cache_path = _cache_path(cubin, tool)
    text = None if cache_path is None else _read_cached(cache_path)
    if text is None:
        text = normalize(_run_and_check(cubin, tool, arch))
        _store(cache_path, text)
    return text


def disassemble_all(cubins: Iterable[Path], tool: Disassembler, progress: Callable[[Path], None]) -> None:
    """Disassemble cubins in parallel, several by one start, so that `disassemble` finds them in the cache.

    Calls `progress` for each. Errors are reported by the later `disassemble`. Does nothing if the cache is disabled.
    """
    if is_disabled(CACHE_VARIABLE):
        return
    groups: dict[bytes, list[Path]] = {}
    for path in cubins:
        try:
            groups.setdefault(merge_key(read_head(path, HEADER_BYTES)), []).append(path)
        except (OSError, CacheError):
            progress(path)

    def disassemble_batch(paths: Sequence[Path]) -> Sequence[Path]:
        contents: dict[bytes, None] = {}
        for path in paths:
            with contextlib.suppress(OSError, CacheError):
                contents[read_content(path, MAX_BINARY_BYTES)] = None
        disassemble_merged([*contents], tool)
        for cubin in contents:
            with contextlib.suppress(CacheError):
                disassemble(cubin, tool)
        return paths

    batches = []
    for paths in groups.values():
        count = min(_MOST_MERGED, -(-len(paths) // (os.cpu_count() or 1)))
        batches += [paths[at : at + count] for at in range(0, len(paths), count)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(disassemble_batch, batch) for batch in batches]):
            for path in done.result():
                progress(path)


def disassemble_merged(cubins: Sequence[bytes], tool: Disassembler) -> None:
    """Fill the cache for cubins of equal `merge_key` by one start of the tool, where that gives the same text."""
    missing = [of for of in cubins if (path := _cache_path(of, tool)) is not None and _read_cached(path) is None]
    if len(missing) < 2:
        return
    with contextlib.suppress(CacheError, ValueError, LookupError, struct.error):
        for cubin in missing:
            binary_arch("cubin", cubin)
        with private_copy(merged := merge_cubins(missing), "kernels.cubin") as copy:
            status, text, _ = _run_disassembler(tool, copy, len(merged))
        if not status and _INDIRECT.search(text) is None:
            for cubin, function in zip(missing, split_functions(text), strict=True):
                _store(_cache_path(cubin, tool), function)


def binary_arch(suffix: str, binary: bytes) -> str:
    """The architecture in the header of a `cubin` or `hsaco`.

    Raises:
        CacheError: the file is too large, does not match its suffix, or its sections overlap.
    """
    if len(binary) > MAX_BINARY_BYTES:
        raise CacheError(f"not disassembled: the {suffix} has more than {MAX_BINARY_BYTES >> 20} MiB.")
    try:
        target = parse_stage_target(suffix, binary[:64])
    except UsageError as error:
        raise CacheError(f"not disassembled: {error.message}", error.remedy) from error
    if target is None or target.backend != _BACKEND[suffix]:
        raise CacheError(f"not disassembled: the file is not in {suffix} format.", "Compile the kernel again.")
    refuse_repeated_contents(binary, suffix)
    return target.arch


def _run_and_check(cubin: bytes, tool: Disassembler, arch: str) -> str:
    with private_copy(cubin, "kernel.cubin") as path:
        status, text, complaint = _run_disassembler(tool, path, len(cubin))
    if status:
        reason = " ".join(complaint.replace(str(path), "the file").split())[:200]
        problem = f"{_NAME} {tool.version} does not read this {arch} cubin{f' ({reason})' if reason else ''}"
        raise CacheError(f"not disassembled: {problem}.", _suggest_toolkit(arch, tool))
    if "/*0000*/" not in text:
        raise CacheError(f"not disassembled: {tool.path} printed no code.", _REMEDY)
    return text


def _run_disassembler(tool: Disassembler, path: Path, size: int) -> tuple[int, str, str]:
    """The tool's exit status, its output for a cubin, and its error message if it fails."""
    # Following branches takes as long as everything else, and only indirect branches need it.
    command = [str(tool.path), "-c", "-gi", "-hex", "-ndf", str(path)]
    # An instruction has 16 bytes, two lines of about 150 characters, and up to a dozen line marks.
    limit = 64 * size + (1 << 20)
    # Measured: 64 MiB for a small cubin, and 60 times the size of a large one.
    memory = min(1.0, 1 / 16 + size / MAX_BINARY_BYTES)
    try:
        status, output = run_tool(command, limit, memory=memory)
        text, complaint = output.decode(errors="replace"), b""
        if status == 0 and _INDIRECT.search(text) is not None:
            command.remove("-ndf")
            resolved_status, resolved_output = run_tool(command, limit, memory=memory)
            if resolved_status == 0:
                text = resolved_output.decode(errors="replace")
        if status:
            _, complaint = run_tool(command, 4096, errors=True, memory=memory)
    except CacheError as error:
        raise CacheError(f"not disassembled: {error.message}", _REMEDY) from error
    return status, text, complaint.decode(errors="replace")


_FIRST_TOOLKIT = {
    100: (12, 8), 101: (12, 8), 120: (12, 8), 103: (12, 9), 121: (12, 9), 88: (13, 0), 110: (13, 0)
}  # fmt: skip
"""The first CUDA toolkit that reads each architecture after sm_90."""


def _suggest_toolkit(arch: str, tool: Disassembler) -> str:
    """Remedy where a tool fails: a release that knows the architecture, else a new file.

    **Source** Release notes of CUDA 12.8, 12.9 and 13.0 for the supported architectures; checked with the
    tools of Triton 3.2, 3.6 and 3.9.
    """
    number = int(re.sub(r"\D", "", arch) or 0)
    if number < 75 and tool.release >= (13, 0):
        return f"{_NAME} of CUDA 12 reads it (Triton 2.2 to 3.6 include it); specify it with --nvdisasm PATH."
    since = _FIRST_TOOLKIT.get(number, (0, 0))
    if tool.release < since:
        return f"{_NAME} of CUDA {since[0]}.{since[1]} or later reads it; specify it with --nvdisasm PATH."
    return "Compile the kernel again: the file is truncated or damaged."


# ── The user's cache directory ───────────────────────────────────────────────────────────────────


def _store(cache_path: Path | None, text: str) -> None:
    if cache_path is not None:
        with contextlib.suppress(OSError):
            _evict_oldest(cache_path.parent)
        write_private(cache_path, zlib.compress(text.encode(), 1))


def _cache_path(cubin: bytes, tool: Disassembler) -> Path | None:
    """Cache path for the text of a cubin; None if the cache is disabled or there is no home directory."""
    root = None if is_disabled(CACHE_VARIABLE) else user_cache()
    if root is None:
        return None
    return root / "sass" / hashlib.sha256(cubin + tool.version.encode()).hexdigest()


def _read_cached(path: Path) -> str | None:
    """The cached text at a path; None if missing or incomplete."""
    try:
        unpacked = zlib.decompressobj()
        text = unpacked.decompress(read_own_content(path, MAX_CACHE_BYTES), 64 * MAX_BINARY_BYTES)
    except (OSError, zlib.error):
        return None
    return text.decode(errors="replace") if unpacked.eof else None


@lru_cache(maxsize=4)
def _evict_oldest(directory: Path) -> None:
    """Remove the oldest texts above the limit; once per process is enough."""
    with os.scandir(directory) as listing:
        entries = [(entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in listing]
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= MAX_CACHE_BYTES:
            break
        with contextlib.suppress(OSError):
            Path(path).unlink()
            total -= size

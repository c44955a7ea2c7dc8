"""A kernel's files in a cache: everything known before any stage is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import TritonVersion
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.model.text import SourceText

CUDA_FILES = frozenset({"ptx", "cubin", "sass"})
HIP_FILES = frozenset({"amdgcn", "hsaco"})
BINARIES = frozenset({"cubin", "hsaco"})
TEXT_STAGES = frozenset({"source", "glir", "ttir", "ttgir", "llir", "ptx", "amdgcn", "sass"})
REMARKS = "remarks"
"""Compiler diagnostics, stored next to a kernel by `inspect-kernel compile`."""
SUFFIXES = TEXT_STAGES | BINARIES | {"json", REMARKS}


class Problem(NamedTuple):
    """A file that could not be read, or only in part."""

    path: str
    """Relative to the cache directory."""
    problem: str


LINKED_DIRECTORY = "link to a directory, not followed"
"""Kind of a link that may lead to kernels."""
LAUNCH_RECORD = "manifest of compiled kernels"
"""Kind of the file that records launches."""
EMPTY_DIRECTORY = "empty directory"
CONTAINER = "archive or trace"
"""Kind of a file that is read where a directory has nothing else, or by its path."""
CONTAINER_SUFFIXES = (".zip", ".tar", ".tgz", ".gz", ".zst", ".zstd", ".ndjson", ".jsonl", ".mlir", ".pt2", ".sqlite3")


class OtherFile(NamedTuple):
    """A file in the cache that does not belong to a kernel: listed, never read."""

    path: str
    kind: str


class MemoryFile(NamedTuple):
    """A file whose content is in memory; it can be read like a path."""

    name: str
    content: bytes


File = Path | MemoryFile


class Completeness(StringEnum):
    """How much of a compilation is available."""

    COMPLETE = "complete"
    BINARY_ONLY = "binary-only"
    PARTIAL = "partial"
    RECORDED = "recorded"
    """Facts only, as stored in a baseline."""


_COMPILATION = (("ttir",), ("ttgir",), ("llir",), ("ptx", "amdgcn"), ("cubin", "hsaco"))
"""What a compilation leaves, in its order: of NVIDIA and AMD."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files that one compilation left."""

    directory: str
    """Directory of the entry, relative to the cache directory, with `/`; `.` for the cache directory itself."""
    stem: str
    """Base name of the files: the name of the Python function."""
    name: str
    """The kernel symbol in the metadata, else the stem."""
    display_name: str
    """The name without the specialisation suffix that Triton 2.x appended (`matmul_0d1d2d34`)."""
    hash: str
    """The metadata's hash, else the directory name; for files in memory, their SHA-256."""
    target: Target | None
    triton_version: TritonVersion | None
    """As written (3.3 and later), else derived from the metadata's keys: `2.0` … `2.3`, `3.0/3.1`, `3.2`."""
    num_warps: int | None
    num_stages: int | None
    shared_bytes: int | None
    """Bytes of shared memory per block, static and dynamic."""
    state: Completeness
    """`partial`: without readable metadata, from a failed or running compile or a dump directory."""
    files: Mapping[str, File] = field(hash=False)
    """By suffix: `ttir`, `ptx`, `cubin`, `json` …"""
    metadata: Mapping[str, object] = field(hash=False)
    """The JSON as written; keys differ between versions."""
    constants: Mapping[str, object] = field(default_factory=dict, hash=False)
    """Values of its constexprs, from the tool's record beside the entry; Triton stores none."""
    requested_kernel: str | None = None
    """What was compiled, from the same record: `FILE.py:KERNEL`, or the name of a reference kernel."""
    is_assembled: bool = False
    """True if the cubin is not from the cache, but was assembled here from the PTX by ptxas."""
    other_kernels: tuple[str, ...] = ()
    """Further kernels of its binary, each an artifact of its own (cuTile, CUTLASS)."""

    @property
    def is_gluon(self) -> bool:
        """True for a program in Gluon, which starts in TTGIR: it orders its copies itself and reads no `num_stages`."""
        return "ttir" not in self.files and not self.files.keys().isdisjoint(("glir", "source"))

    @property
    def gaps(self) -> tuple[str, ...]:
        """Stages that are missing between others: somebody removed them, or the cache was copied in parts."""
        gaps: tuple[str, ...] = ()
        since: tuple[str, ...] | None = None
        for suffixes in _COMPILATION:
            if suffixes[0] in self.files or suffixes[-1] in self.files:
                gaps, since = gaps + (since or ()), ()
            elif since is not None:
                since += suffixes[-1:] if "hsaco" in self.files or "amdgcn" in self.files else suffixes[:1]
        return gaps

    def display_path(self, suffix: str) -> str:
        """The display path of a file, relative to the cache directory."""
        return join_display_path(self.directory, sanitize(self.files[suffix].name))


@dataclass(frozen=True, slots=True)
class Cache:
    """The contents of a cache directory."""

    root: Path
    entries: tuple[Artifact, ...]
    """Sorted by name, target and hash."""
    others: tuple[OtherFile, ...]
    problems: tuple[Problem, ...]
    container: str = ""
    """The archive, trace or address that it was unpacked from into `root`."""
    missing: tuple[Problem, ...] = ()
    """The problems that may have kept kernels from being listed."""

    @property
    def title(self) -> str:
        """Where it comes from, for people."""
        return self.container or str(self.root)


@dataclass(frozen=True, slots=True)
class CacheContents:
    """Collects the contents of a cache during the walk."""

    artifacts: list[Artifact] = field(default_factory=list)
    others: list[OtherFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    missing: list[Problem] = field(default_factory=list)
    """Those of the problems behind which there may be kernels."""

    def add_missing(self, path: str, sentence: str) -> None:
        """Add a problem that may hide kernels."""
        self.problems.append(Problem(path, sentence))
        self.missing.append(self.problems[-1])


class StageText(NamedTuple):
    """The text of one stage, and a problem with it, if any."""

    source: SourceText
    problem: Problem | None


def sanitize(text: str) -> str:
    """Text that any terminal and encoding can show: file names may hold arbitrary bytes, names escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else chr(0xFFFD) for c in text)


def join_display_path(directory: str, name: str) -> str:
    """The display path of a file in a directory."""
    return name if directory == "." else f"{directory}/{name}"

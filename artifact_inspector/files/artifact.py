"""A kernel's files as a cache has them: what is known before any stage of it is parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import TritonVersion
from artifact_inspector.model.text import SourceText
from artifact_inspector.model.word import Word

CUDA_FILES = frozenset({"ptx", "cubin", "sass"})
HIP_FILES = frozenset({"amdgcn", "hsaco"})
BINARIES = frozenset({"cubin", "hsaco"})
TEXT_STAGES = frozenset({"source", "glir", "ttir", "ttgir", "llir", "ptx", "amdgcn", "sass"})
REMARKS = "remarks"
"""What the compilers said, kept beside a kernel by `inspect-kernel compile`."""
SUFFIXES = TEXT_STAGES | BINARIES | {"json", REMARKS}


class Problem(NamedTuple):
    """Something that could not be read, or only in part."""

    path: str
    """From the cache directory."""
    problem: str


class Other(NamedTuple):
    """Something in the cache that is no kernel: named, never looked into."""

    path: str
    kind: str


class HeldFile(NamedTuple):
    """A file whose content is in memory; it is read as a path is."""

    name: str
    content: bytes


File = Path | HeldFile


class Completeness(Word):
    """How much of a compilation is left."""

    COMPLETE = "complete"
    BINARY_ONLY = "binary-only"
    PARTIAL = "partial"
    RECORDED = "recorded"
    """Facts alone, which a baseline keeps."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one compilation left behind."""

    directory: str
    """Of its entry, from the cache directory, with `/`; `.` for the directory itself."""
    stem: str
    """What its files are called: the Python function's name."""
    name: str
    """The kernel symbol by the metadata, else the stem."""
    display_name: str
    """The name without the specialisation that Triton 2.x appended (`matmul_0d1d2d34`)."""
    hash: str
    """The metadata's hash; where it has none, the directory's own name, in memory the files' SHA-256."""
    target: Target | None
    triton_version: TritonVersion | None
    """As written (3.3 and later), else told from the metadata's keys: `2.0` … `2.3`, `3.0/3.1`, `3.2`."""
    num_warps: int | None
    num_stages: int | None
    shared_bytes: int | None
    """Bytes of shared memory per block, static and dynamic."""
    state: Completeness
    """`partial`: no readable metadata, as a failed compile, one still running and a dump directory leave
    it."""
    files: Mapping[str, File] = field(hash=False)
    """By suffix: `ttir`, `ptx`, `cubin`, `json` …"""
    metadata: Mapping[str, object] = field(hash=False)
    """The JSON as written; keys come and go between versions."""
    constants: Mapping[str, object] = field(default_factory=dict, hash=False)
    """Values of its constexprs, where our own record beside the entry has them; Triton keeps none."""
    place: str | None = None
    """What was asked to be compiled, by the same record: `FILE.py:KERNEL`, or a reference kernel's name."""
    is_assembled: bool = False
    """True for one whose cubin is not of the cache: ptxas made it here, of the PTX."""

    def relative(self, suffix: str) -> str:
        """The path of a file from the cache directory, as it is shown."""
        return join(self.directory, printable(self.files[suffix].name))


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache directory as found."""

    root: Path
    entries: tuple[Artifact, ...]
    """By name, target and hash."""
    others: tuple[Other, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What is gathered of a cache while it is walked."""

    artifacts: list[Artifact] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class StageText(NamedTuple):
    """The text of one stage and what is wrong with it, if anything."""

    source: SourceText
    problem: Problem | None


def printable(text: str) -> str:
    """Text that any terminal and any encoding takes: file names may hold bytes, names escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else chr(0xFFFD) for c in text)


def join(directory: str, name: str) -> str:
    """The path of something in a directory, as it is shown."""
    return name if directory == "." else f"{directory}/{name}"

"""The kernel whose passes are traced: a compile request, or a cache entry that is compiled from its TTIR."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.environments import find_interpreter, parse_triton
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.compiling.untrusted import allowed_options, describe_dropped
from artifact_inspector.errors import UsageError
from artifact_inspector.files.assembler_directives import refuse_inline_directives
from artifact_inspector.files.cache import Artifact, read_stage
from artifact_inspector.files.disassembly import disassemble as sass_of
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target
from artifact_inspector.passes.dump_facts import Topic
from artifact_inspector.passes.dumped_compile import (
    DumpedCompile,
    NoticeCallback,
    compile_with_dumps,
    compile_without_dumps,
)
from artifact_inspector.passes.trace import ChangeCallback, PassTrace, trace_dumps
from artifact_inspector.vocabulary.options import read_options


@dataclass(frozen=True, slots=True)
class TraceSubject:
    """A kernel to compile for one GPU."""

    request: Mapping[str, Any]
    """The request, as `KernelRequest.as_json` returns it; for a cache entry without a place."""
    target: Target
    triton: str | None
    """The version to compile with; None for the installed one."""
    saved_ttir: str | None = None
    """The TTIR of a cache entry; None for a request."""
    name: str = ""
    notes: tuple[str, ...] = ()
    dropped_options: tuple[str, ...] = ()
    """Options of a cache entry that are not passed to the compiler."""
    is_release_recorded: bool = False
    """Whether only the cache names the version."""

    @contextmanager
    def compile_with_dumps(self, notice: NoticeCallback, triton: str | None = None) -> Iterator[DumpedCompile]:
        """Compile it with all dumps, in a temporary directory that is removed when the block ends."""
        if self.triton is not None and triton is None and self.is_release_recorded:
            find_interpreter(*parse_triton(self.triton), may_create=False)
        with self._prepare_request() as (ask, directory):
            yield compile_with_dumps(ask, self.target, triton or self.triton, directory, notice=notice)

    @contextmanager
    def compile_without_dumps(self, notice: NoticeCallback, triton: str) -> Iterator[Artifact]:
        """Compile it without dumps, likewise."""
        with self._prepare_request() as (ask, directory):
            yield compile_without_dumps(ask, self.target, triton, directory, notice=notice)

    @contextmanager
    def _prepare_request(self) -> Iterator[tuple[dict[str, Any], Path]]:
        with scratch_directory() as scratch:
            directory, ask = Path(scratch), dict(self.request)
            if self.saved_ttir is not None:
                file = directory / f"{self.name}.ttir"
                file.write_text(self.saved_ttir, encoding="utf-8")
                ask["place"] = str(file)
            yield ask, directory


def subject_of_request(request: KernelRequest, target: Target, triton: str | None = None) -> TraceSubject:
    """The subject of a compile request.

    Raises:
        UsageError: a signature or constant is invalid.
    """
    return TraceSubject(request.as_json(), target, triton, name=request.kernel_path.rpartition(":")[2])


def subject_of_entry(artifact: Artifact, triton: str | None = None) -> TraceSubject:
    """The subject of a cache entry, which is compiled from its TTIR with its own options.

    Raises:
        UsageError: its TTIR, target or Triton version is unknown.
        CacheError: its TTIR cannot be read, or holds assembler directives that open files.
    """
    name = artifact.display_name
    if "ttir" not in artifact.files:
        raise UsageError(f"{name} has no TTIR to compile.", "Name the kernel as FILE.py:KERNEL.")
    if artifact.target is None:
        raise UsageError(f"The target of {name} is unknown.", "Name the kernel as FILE.py:KERNEL, with -t.")
    version = artifact.triton_version
    if triton is None and version is None:
        raise UsageError(f"The Triton version of {name} is unknown.", "Name it: --triton 3.6.0.")
    is_release_recorded = triton is None
    notes = ["compiled from the TTIR of the cache: passes before TTIR are not traced"]
    if triton is None:
        assert version is not None
        candidates = version.candidates
        triton = candidates[-1]
        if "=" in triton:  # VERSION=PYTHON runs that Python, which only the user may choose
            raise UsageError(f"{version!r} is not a version of Triton.", "Name it: --triton 3.6.0.")
        if len(candidates) > 1:
            notes.append(f"its metadata fits Triton {' and '.join(candidates)}: {triton} was used")
    selected = {name: artifact.metadata[name] for name in read_options(artifact.metadata)}
    options, dropped = allowed_options(selected)
    if dropped:
        notes.append(describe_dropped(dropped))
    text = read_stage(artifact, "ttir").source.text
    refuse_inline_directives(text, f"The TTIR of {name}")
    ask = {"place": "", "signature": None, "constexprs": {}, "options": options, "configs": None, "untrusted": True}
    return TraceSubject(ask, artifact.target, triton, text, artifact.stem, tuple(notes), dropped, is_release_recorded)


def trace_passes(
    subject: TraceSubject,
    topics: Collection[Topic],
    *,
    triton: str | None = None,
    on_change: ChangeCallback | None = None,
    dump_directory: Path | None = None,
    notice: NoticeCallback = lambda sentence: None,
) -> PassTrace:
    """Compile a kernel and report what each pass changed.

    Args:
        on_change: called with each dump that a pass changed.
        dump_directory: a directory for all output of the compiler.

    Raises:
        UsageError, CompileError: as `compile_kernels`.
    """
    with subject.compile_with_dumps(notice, triton) as compiled:
        if dump_directory is not None:
            for file in (*compiled.dump_files, compiled.timing_file):
                shutil.copy(file, dump_directory / file.name)
        tool = find_disassembler(None)
        disassemble = None if tool is None else lambda suffix, binary: sass_of(binary, tool)
        times = compiled.pass_times()
        return trace_dumps(compiled.artifact, compiled.dumps(), times, topics, on_change, disassemble)

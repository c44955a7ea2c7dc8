"""What is compiled pass by pass: a kernel as `compile` takes it, or an entry of a cache from its TTIR on."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.compiling.untrusted import allowed_options, describe_dropped
from artifact_inspector.errors import UsageError
from artifact_inspector.files.assembler_directives import refuse_inline_directives
from artifact_inspector.files.cache import Artifact, read_stage
from artifact_inspector.files.disassembly import disassemble as sass_of
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.hardware.targets import Target
from artifact_inspector.passes.compiled import (
    DumpedCompile,
    Notice,
    compile_alone,
    compile_with_dumps,
)
from artifact_inspector.passes.observation import What
from artifact_inspector.passes.trace import Keep, PassTrace, trace
from artifact_inspector.vocabulary.options import read_options


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel for one GPU."""

    ask: Mapping[str, Any]
    """As `KernelRequest.as_json`; of a cache entry the place is empty until its TTIR is written."""
    target: Target
    triton: str | None
    """The version to compile with; None for the one installed here."""
    saved: str | None = None
    """The TTIR of a cache entry."""
    name: str = ""
    notes: tuple[str, ...] = ()
    dropped_options: tuple[str, ...] = ()
    """Options of a cache entry that are not passed to the compiler."""

    @contextmanager
    def compiled(self, notice: Notice, triton: str | None = None) -> Iterator[DumpedCompile]:
        """One compile of it with all texts, in a directory that goes with the block.

        Args:
            notice: as of `compile_with_dumps`.
            triton: another version.
        """
        with self._placed() as (ask, directory):
            yield compile_with_dumps(ask, self.target, triton or self.triton, directory, notice=notice)

    @contextmanager
    def compiled_alone(self, notice: Notice, triton: str) -> Iterator[Artifact]:
        """One compile of it without texts, likewise."""
        with self._placed() as (ask, directory):
            yield compile_alone(ask, self.target, triton, directory, notice=notice)

    @contextmanager
    def _placed(self) -> Iterator[tuple[dict[str, Any], Path]]:
        with scratch_directory() as scratch:
            directory, ask = Path(scratch), dict(self.ask)
            if self.saved is not None:
                file = directory / f"{self.name}.ttir"
                file.write_text(self.saved, encoding="utf-8")
                ask["place"] = str(file)
            yield ask, directory


def of_request(request: KernelRequest, target: Target, triton: str | None = None) -> Subject:
    """A kernel as `compile` takes it.

    Raises:
        UsageError: a signature or constant that cannot be read.
    """
    return Subject(request.as_json(), target, triton, name=request.place.rpartition(":")[2])


def of_entry(artifact: Artifact, triton: str | None = None) -> Subject:
    """An entry of a cache, compiled again from its TTIR with its own options.

    Args:
        artifact: the entry.
        triton: another version than its own.

    Raises:
        UsageError: it has no TTIR, no target, or no Triton that is known.
        CacheError: its TTIR cannot be read, or holds assembler directives that open files.
    """
    name = artifact.display_name
    if "ttir" not in artifact.files:
        raise UsageError(f"{name} has no TTIR to compile again.", "Name the kernel as FILE.py:KERNEL.")
    if artifact.target is None:
        raise UsageError(f"The target of {name} is not known.", "Name the kernel as FILE.py:KERNEL, with -t.")
    version = artifact.triton_version
    if triton is None and version is None:
        raise UsageError(f"The Triton that compiled {name} is not known.", "Say which: --triton 3.6.0.")
    notes = ["compiled again from the TTIR of the cache: the passes that made it are not among these"]
    if triton is None:
        assert version is not None
        candidates = str(version).split("/")
        triton = candidates[-1]
        if "=" in triton:  # of whoever types it, the Python that is to be run
            raise UsageError(f"{version!r} is no version of Triton.", "Say which: --triton 3.6.0.")
        if len(candidates) > 1:
            notes.append(f"its metadata does not tell {' from '.join(candidates)}: Triton {triton} was taken")
    chosen = {name: artifact.metadata[name] for name in read_options(artifact.metadata)}
    options, dropped = allowed_options(chosen)
    if dropped:
        notes.append(describe_dropped(dropped))
    text = read_stage(artifact, "ttir").source.text
    refuse_inline_directives(text, f"The TTIR of {name}")
    ask = {
        "place": "",
        "signature": None,
        "constexprs": {},
        "options": options,
        "configs": None,
        "untrusted": True,
    }
    return Subject(ask, artifact.target, triton, text, artifact.stem, tuple(notes), dropped)


def trace_passes(
    subject: Subject,
    wanted: Collection[What],
    *,
    triton: str | None = None,
    keep: Keep | None = None,
    keep_texts: Path | None = None,
    notice: Notice = lambda sentence: None,
) -> PassTrace:
    """Compile a kernel and say what each pass changed.

    Args:
        subject: the kernel.
        wanted: the facts to follow.
        triton: another version than the subject's.
        keep: is told of each text that a pass changed.
        keep_texts: a directory that gets all that the compiler said.
        notice: called with a sentence before anything that takes long.

    Raises:
        UsageError, CompileError: as `compile_kernels`.
    """
    with subject.compiled(notice, triton) as compiled:
        if keep_texts is not None:
            for file in (*compiled.texts, compiled.times):
                shutil.copy(file, keep_texts / file.name)
        tool = find_disassembler(None)
        disassemble = None if tool is None else lambda suffix, binary: sass_of(binary, tool)
        times = compiled.pass_times()
        return trace(compiled.artifact, compiled.dumps(), times, wanted, keep, disassemble)

"""What a program would launch, as JSON: `capture --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.compiling import ProgramRun
from artifact_inspector.compiling.ask.captured import CapturedKernel, merge_notes
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

define_shape(
    CapturedKernel,
    "kernel=name target=target.arch hash signature constexprs options launches benchmark_launches"
    " compiled_for=compiled_for.line",
    rounded={"seconds": 3},
    types={"options": Mapping[str, str | int | float | bool | None]},
)


@dataclass(frozen=True, slots=True)
class RunDocument:
    """How the program ran for one target."""

    target: str
    status: int
    """Its exit status."""
    problem: str | None
    """Why nothing was captured, or what the program lacked."""


@dataclass(frozen=True, slots=True)
class NoteDocument:
    """Something that could not be done as on the GPU."""

    text: str
    location: str | None
    """`file:line` of the program's statement."""
    targets: tuple[str, ...]
    """Of the runs that it is about."""


define_shape(RunDocument, title="ProgramRun")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedDocument(Document):
    """What a program would launch: `inspect-kernel capture --json`."""

    document: Literal["captured"] = "captured"
    captured: tuple[CapturedKernel, ...]
    runs: tuple[RunDocument, ...]
    notes: tuple[NoteDocument, ...]


def captured_document(runs: Sequence[ProgramRun]) -> CapturedDocument:
    """The kernels of all runs, how each run went, and what could not be done as on the GPU."""
    notes = merge_notes(note for run in runs for note in run.notes)
    return CapturedDocument(
        captured=tuple(kernel for run in runs for kernel in run.kernels),
        runs=tuple(_run(run) for run in runs),
        notes=tuple(NoteDocument(x.text, x.location, tuple(t.arch for t in x.targets)) for x in notes),
    )


def _run(run: ProgramRun) -> RunDocument:
    problem = None if run.problem is None else " ".join(filter(None, run.problem))
    return RunDocument(run.target.arch, run.status, problem)

"""Compiles a kernel with other options, from its saved TTIR: no user code is imported, which a library makes slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from artifact_inspector.api.remedies import find_release
from artifact_inspector.comparison.corpus import compare_candidates
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.compiling.ask.compile import recompile_texts
from artifact_inspector.compiling.ask.environments import own_triton_version
from artifact_inspector.compiling.ask.request import ConstantText, KernelRequest
from artifact_inspector.compiling.untrusted import UntrustedRecord
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.changes import (
    OPTIONS,
    Change,
    constants_of,
    describe_change,
    options_of,
    propose_changes,
)
from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact
from artifact_inspector.passes.subject import subject_of_entry
from artifact_inspector.vocabulary.fact import Sign

_MOST_TRIALS = 4
_MOST_SENTENCES = 3


def can_recompile(entry: Artifact) -> bool:
    """Whether the installed Triton compiled the entry from a TTIR that the cache has."""
    installed, recorded = own_triton_version(), entry.triton_version
    is_installed = installed is not None and recorded is not None and recorded.may_match(installed)
    return "ttir" in entry.files and not entry.is_gluon and is_installed


def recompile_options(entry: Artifact, changes: Sequence[Change], directory: Path) -> list[Artifact | None]:
    """The kernel with each change of options, in an empty directory; None where the compiler refuses it.

    Args:
        changes: option → its new value.

    Raises:
        UsageError: the kernel has no TTIR, or its target is unknown.
        CompileError: Triton is not usable.
    """
    release, interpreter = find_release(entry.triton_version, own_triton_version() or "")
    subject = subject_of_entry(entry, release)
    texts = [(subject.saved_ttir or "", {**subject.request["options"], **change}) for change in changes]
    directory.mkdir(parents=True, exist_ok=True)
    rows = recompile_texts(texts, subject.name, subject.target, directory, interpreter=interpreter)
    return [row.artifact for row in rows]


def request_for(path: str, record: UntrustedRecord, change: Change) -> KernelRequest:
    """A compile of a kernel as it is recorded, with changed options and constants."""
    constants = {name: ConstantText(repr(value)) for name, value in constants_of(change).items()}
    options = {**record.options, **options_of(change)}
    return KernelRequest(path, record.types, {**record.constants, **constants}, options, is_untrusted=True)


def find_better_options(entry: Artifact, kinds: Sequence[CauseKind], directory: Path) -> Iterator[str]:
    """Options with which the machine code gets better, a sentence each, where no time is predicted.

    Args:
        kinds: its causes, the first one first.
    """
    options = {name: entry.metadata.get(name) for name in OPTIONS}
    warp_size = 32 if entry.target is None else entry.target.warp_size
    changes = propose_changes(kinds, options, {}, warp_size)[:_MOST_TRIALS]
    try:
        original, *changed = recompile_options(entry, [{}, *changes], directory)
    except InspectorError:
        return
    if original is None:
        return
    better = []
    for change, artifact in zip(changes, changed, strict=True):
        if artifact is not None:
            headline = compare_candidates(Candidate(original), Candidate(artifact), inspect_artifact).headline
            if headline is not None and headline.fact.direction is Sign.BETTER:
                better.append(headline.as_remedy(describe_change(change)))
    yield from better[:_MOST_SENTENCES]

"""Whether two compiled kernels are the same, file by file, except for names, locations and debug sections."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from itertools import zip_longest

from artifact_inspector.comparison.fact_pair import SIDES, PairSide
from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import BINARIES, Artifact
from artifact_inspector.files.binaries import read_loaded_sections
from artifact_inspector.files.reader import read_file, read_stage
from artifact_inspector.formats.canonical import canonical_lines_of
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary.names import STEPS, step_of

BINARY = "binary"
"""The kind of cubin and hsaco; that of a text is its step (`names.STEPS`)."""


class Likeness(Enum):
    """How similar two files of one kind are."""

    IDENTICAL = "identical"
    """Identical bytes."""
    ALIKE = "alike"
    """The same program: names, locations, numbering or debug sections differ."""
    DIFFERENT = "different"
    UNREADABLE = "unreadable"


def kinds_of(files: Collection[str]) -> dict[str, str]:
    """Those of an artifact's files that can be compared, in the order of compilation: kind → suffix."""
    texts = {step_of(stage): stage.value for stage in Stage if stage.value in files}
    binary = next((suffix for suffix in sorted(BINARIES) if suffix in files), None)
    return texts if binary is None else texts | {BINARY: binary}


def lacking_kinds(left: Collection[str], right: Collection[str]) -> list[tuple[PairSide, str]]:
    """Each side that lacks kinds of files that the other has, and which."""
    lacks = (set(right).difference(left), set(left).difference(right))
    names = [", ".join(sorted(kinds, key=(*STEPS, BINARY).index)) for kinds in lacks]
    return [(side, kinds) for side, kinds in zip(SIDES, names, strict=True) if kinds]


def likeness_of(left: Artifact, right: Artifact, kind: str) -> Likeness:
    """How similar the files of one kind are; both artifacts have one."""
    suffix = kinds_of(left.files)[kind]
    if suffix != kinds_of(right.files)[kind]:
        return Likeness.DIFFERENT
    try:
        if read_file(left, suffix) == read_file(right, suffix):
            return Likeness.IDENTICAL
        pairs = zip_longest(_program(left, suffix), _program(right, suffix))
        is_alike = all(ours == theirs for ours, theirs in pairs)
    except CacheError:
        return Likeness.UNREADABLE  # the next reader of the file reports the problem
    return Likeness.ALIKE if is_alike else Likeness.DIFFERENT


def _program(artifact: Artifact, suffix: str) -> Iterator[object]:
    """The lines or sections of a file without names, places and numbering."""
    if suffix in BINARIES:
        return iter([read_loaded_sections(read_file(artifact, suffix), suffix)])
    return canonical_lines_of(read_stage(artifact, suffix).source.text, Stage(suffix))

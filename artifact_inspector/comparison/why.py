"""Why a kernel was compiled again: in what two entries of one name, or all of them, differ before a compile.

Triton makes an entry for each key: the source, the types of the arguments with what was specialised on (÷16,
=1), constants, options, the target, the compiler and some of the environment. A cache keeps no key, so what
is told is what the entry's files tell of its parts; where none of them differs, that is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.matching import digest_of
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Stage
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.vocabulary.forms import Compiled
from artifact_inspector.vocabulary.options import OPTIONS, read_options


class Cause(StringEnum):
    """What part of a key makes another entry."""

    TARGET = "target"
    VERSION = "version of Triton"
    DTYPE = "dtype"
    SPECIALISATION = "specialisation"
    """Of an integer or a pointer: divisible by 16, equal to 1."""
    CONSTANT = "constant"
    OPTION = "option"
    SOURCE = "source"
    ENVIRONMENT = "environment"
    UNKNOWN = "unknown"


class Respect(NamedTuple):
    """One thing that entries may differ in."""

    cause: Cause
    name: str
    """`N`, `BLOCK_M`, `num_warps`; empty where the cause says all."""


class Reason(NamedTuple):
    """One thing in which two entries differ."""

    respect: Respect
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Varying:
    """One thing that varies among the forms of a kernel."""

    respect: Respect
    values: Mapping[str, int]
    """Each value → forms that have it."""
    makes: int
    """Forms that there would be fewer if it did not vary."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Why a kernel has as many forms as it has."""

    forms: int
    varying: tuple[Varying, ...]
    """What makes most forms first."""
    alike: int
    """Forms that nothing in their files tells from another."""


_RESULTS = frozenset(
    (
        *("hash", "name", "shared", "target", "arch", "warp_size", "triton_version", "tmem_size", "ids"),
        *("global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align"),
        *("tensordesc_meta", "constants", "ctime", "cluster_dims", "clusterDims", "device_type"),
    )
)
"""Keys of the metadata that a compile fills in, or that are told elsewhere."""
NONE = "none"
ANY = "any value"
ABSENT = "no argument"
"""Of one that is 1, None or a constant."""


def find_reasons(left: Compiled, right: Compiled) -> tuple[Reason, ...]:
    """In what two entries differ that are compiled apart for it."""
    ours, theirs = _respects((left, right))
    found = tuple(
        Reason(respect, ours.get(respect, NONE), theirs.get(respect, NONE))
        for respect in dict.fromkeys((*ours, *theirs))
        if ours.get(respect, NONE) != theirs.get(respect, NONE)
    )
    return found or (_unseen(left.artifact, right.artifact),)


def find_causes(forms: Sequence[Compiled]) -> Causes:
    """What makes the forms of one kernel, each thing with the forms that there would be without it.

    Things of one cause that vary together, as the types of two arguments, are one.
    """
    every = _respects(forms)
    names = list(dict.fromkeys(respect for own in every for respect in own))
    columns = {name: [own.get(name, NONE) for own in every] for name in names}
    together: dict[tuple[Cause, tuple[int, ...]], list[Respect]] = {}
    for name, values in columns.items():
        if len(set(values)) > 1:
            together.setdefault((name.cause, tuple(map(values.index, values))), []).append(name)
    patterns = [pattern for _, pattern in together]
    distinct = len(set(zip(*patterns, strict=True))) if patterns else 1
    varying = []
    for (cause, pattern), same in together.items():
        others = [other for other in patterns if other is not pattern]
        without = len(set(zip(*others, strict=True))) if others else 1
        counted = Counter(columns[same[0]])
        respect = Respect(cause, ", ".join(one.name for one in same))
        varying.append(Varying(respect, dict(counted.most_common()), distinct - without))
    varying.sort(key=lambda one: -one.makes)
    return Causes(len(forms), tuple(varying), len(forms) - distinct)


def _unseen(left: Artifact, right: Artifact) -> Reason:
    """What two entries differ in whose files tell no part of the key apart."""
    ours, theirs = digest_of(left, Stage.TTIR), digest_of(right, Stage.TTIR)
    if ours is not None and theirs is not None and ours != theirs:
        return Reason(Respect(Cause.SOURCE, "TTIR"), ours[:8], theirs[:8])
    return Reason(Respect(Cause.UNKNOWN, ""), "", "")


# -- what an entry's files tell of its key ---------------------------------------------


def _respects(forms: Sequence[Compiled]) -> list[dict[Respect, str]]:
    artifacts, programs = [form.artifact for form in forms], [form.program for form in forms]
    found: list[dict[Respect, str]] = [{} for _ in forms]
    for own, artifact in zip(found, artifacts, strict=True):
        own[Respect(Cause.VERSION, "")] = str(artifact.triton_version or "unknown")
        own[Respect(Cause.TARGET, "")] = "unknown" if artifact.target is None else str(artifact.target)
    for told in (
        _arguments(forms),
        _constants(forms),
        _options(artifacts),
        _lines(programs),
        _environment(artifacts),
    ):
        for own, more in zip(found, told, strict=True):
            own.update(more)
    return found


def _arguments(forms: Sequence[Compiled]) -> Iterable[dict[Respect, str]]:
    """The type of each argument, and what is known of it; by position where the names are not kept."""
    named = [_named(form.program) for form in forms]
    lengths = {len(own) for own in named if own is not None}
    if len(lengths) > 1 and any(own is not None and _is_numbered(own) for own in named):
        respect = Respect(Cause.SPECIALISATION, "arguments that are left")
        yield from ({} if own is None else {respect: str(len(own))} for own in named)
        return
    if any(own is not None and _is_numbered(own) for own in named):
        whole = next((list(own) for own in named if own is not None and not _is_numbered(own)), None)
        named = [None if own is None else dict(zip(whole or list(own), own.values(), strict=True)) for own in named]
    names = {name: kind for own in named if own is not None for name, kind in own.items()}
    for (artifact, _), own in zip(forms, named, strict=True):
        told: dict[Respect, str] = {}
        for name in names if own is not None else ():
            assert own is not None
            kind, _, hint = own.get(name, "").partition(":")
            told[Respect(Cause.DTYPE, name)] = kind if name in own else names[name].partition(":")[0]
            if name in own:
                told[Respect(Cause.SPECIALISATION, name)] = f"÷{hint}" if hint else ANY
            else:
                constant = artifact.constants.get(name)
                told[Respect(Cause.SPECIALISATION, name)] = (
                    ABSENT if name not in artifact.constants else f"= {constant}"
                )
        yield told


def _named(program: KernelProgram | None) -> dict[str, str] | None:
    if program is None or len(program.arguments) != len(program.signature):
        return None
    return dict(zip(program.arguments, program.signature, strict=True))


def _is_numbered(named: Mapping[str, str]) -> bool:
    return any(name.removeprefix("arg").isdecimal() for name in named)


def _constants(forms: Sequence[Compiled]) -> Iterable[dict[Respect, str]]:
    """Constants that our own record has; where one entry has no record, the tiles that are left of them."""
    if not all(artifact.constants for artifact, _ in forms):
        respect = Respect(Cause.CONSTANT, "tiles")
        yield from ({} if program is None else {respect: ", ".join(program.tiles)} for _, program in forms)
        return
    arguments = {name for _, program in forms if program is not None for name in program.arguments}
    for artifact, _ in forms:
        yield {
            Respect(Cause.CONSTANT, name): str(value)
            for name, value in artifact.constants.items()
            if name not in arguments
        }


def _options(artifacts: Sequence[Artifact]) -> Iterable[dict[Respect, str]]:
    """Those that every entry has: what a release or a back end adds is no choice."""
    every = [read_options(artifact.metadata) for artifact in artifacts]
    shared = {name for name in OPTIONS if all(name in own for own in every)}
    for own in every:
        yield {Respect(Cause.OPTION, name): str(value) for name, value in own.items() if name in shared}


def _lines(programs: Sequence[KernelProgram | None]) -> Iterable[dict[Respect, str]]:
    """Where the kernel is defined, which is part of Triton's key, where every entry tells it."""
    respect = Respect(Cause.SOURCE, "line of its definition")
    places = [None if program is None else program.location for program in programs]
    is_told = None not in places
    yield from ({respect: str(place.line)} if place is not None and is_told else {} for place in places)


def _environment(artifacts: Sequence[Artifact]) -> Iterable[dict[Respect, str]]:
    """What else the metadata say, where that differs within one target and version."""
    values: dict[tuple[str, str, str], set[str]] = {}
    own = [
        {key: repr(value) for key, value in x.metadata.items() if key not in _RESULTS and key not in OPTIONS}
        for x in artifacts
    ]
    for artifact, told in zip(artifacts, own, strict=True):
        for key, value in told.items():
            values.setdefault((str(artifact.target), str(artifact.triton_version), key), set()).add(value)
    varying = {key for (_, _, key), found in values.items() if len(found) > 1}
    for told in own:
        yield {Respect(Cause.ENVIRONMENT, key): value for key, value in told.items() if key in varying}

"""Why a kernel was compiled again: the inputs of the compile in which entries of one name differ.

Triton makes an entry for each key: the source, the types of the arguments with their specialisation (÷16, =1),
constants, options, the target, the compiler and some of the environment. A cache does not store the key, so its
parts are read from the entry's files. If none of them differs, the cause is unknown.
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
from artifact_inspector.vocabulary.options import OPTIONS, read_options
from artifact_inspector.vocabulary.variant_labels import Compiled


class KeyPartKind(StringEnum):
    """A part of the key that makes another entry."""

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


class KeyPart(NamedTuple):
    """A part of the key, as one argument or option."""

    cause: KeyPartKind
    name: str
    """`N`, `BLOCK_M`, `num_warps`; empty if the cause has no name."""


class EntryDifference(NamedTuple):
    """A part of the key in which two entries differ."""

    key_part: KeyPart
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Varying:
    """A part of the key that varies among the variants of a kernel."""

    key_part: KeyPart
    values: Mapping[str, int]
    """Each value → number of variants that have it."""
    variants_caused: int
    """Variants caused by this part only."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Why a kernel has its number of variants."""

    variant_count: int
    varying: tuple[Varying, ...]
    """The part that causes most variants first."""
    indistinguishable: int
    """Variants whose files show no difference."""


_RESULTS = frozenset(
    (
        *("hash", "name", "shared", "target", "arch", "warp_size", "triton_version", "tmem_size", "ids"),
        *("global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align"),
        *("tensordesc_meta", "constants", "ctime", "cluster_dims", "clusterDims", "device_type"),
    )
)
"""Keys of the metadata that the compile fills in, or that are compared elsewhere."""
NONE = "none"
ANY = "any value"
ABSENT = "no argument"
"""For an argument that is None or a constant."""


def find_reasons(left: Compiled, right: Compiled) -> tuple[EntryDifference, ...]:
    """The parts of the key in which two entries differ."""
    ours, theirs = _key_parts((left, right))
    differences = tuple(
        EntryDifference(respect, ours.get(respect, NONE), theirs.get(respect, NONE))
        for respect in dict.fromkeys((*ours, *theirs))
        if ours.get(respect, NONE) != theirs.get(respect, NONE)
    )
    return differences or (_hidden_difference(left.artifact, right.artifact),)


def find_causes(variants: Sequence[Compiled]) -> Causes:
    """The parts of the key that vary among variants, each with the variants that only it causes.

    Parts with the same cause that vary in the same way, such as the types of two arguments, are combined.
    """
    values_by_form = _key_parts(variants)
    names = list(dict.fromkeys(respect for parts in values_by_form for respect in parts))
    columns = {name: [parts.get(name, NONE) for parts in values_by_form] for name in names}
    same_pattern: dict[tuple[KeyPartKind, tuple[int, ...]], list[KeyPart]] = {}
    for name, values in columns.items():
        if len(set(values)) > 1:
            same_pattern.setdefault((name.cause, tuple(map(values.index, values))), []).append(name)
    patterns = [pattern for _, pattern in same_pattern]
    distinct = len(set(zip(*patterns, strict=True))) if patterns else 1
    varying = []
    for (cause, pattern), same in same_pattern.items():
        others = [other_pattern for other_pattern in patterns if other_pattern is not pattern]
        without = len(set(zip(*others, strict=True))) if others else 1
        counted = Counter(columns[same[0]])
        respect = KeyPart(cause, ", ".join(item.name for item in same))
        varying.append(Varying(respect, dict(counted.most_common()), distinct - without))
    varying.sort(key=lambda item: -item.variants_caused)
    return Causes(len(variants), tuple(varying), len(variants) - distinct)


def _hidden_difference(left: Artifact, right: Artifact) -> EntryDifference:
    """The difference of two entries whose files show the same key."""
    ours, theirs = digest_of(left, Stage.TTIR), digest_of(right, Stage.TTIR)
    if ours is not None and theirs is not None and ours != theirs:
        return EntryDifference(KeyPart(KeyPartKind.SOURCE, "TTIR"), ours[:8], theirs[:8])
    return EntryDifference(KeyPart(KeyPartKind.UNKNOWN, ""), "", "")


def _key_parts(variants: Sequence[Compiled]) -> list[dict[KeyPart, str]]:
    artifacts, programs = [form.artifact for form in variants], [form.program for form in variants]
    parts_by_form: list[dict[KeyPart, str]] = [{} for _ in variants]
    for parts, artifact in zip(parts_by_form, artifacts, strict=True):
        parts[KeyPart(KeyPartKind.VERSION, "")] = str(artifact.triton_version or "unknown")
        parts[KeyPart(KeyPartKind.TARGET, "")] = "unknown" if artifact.target is None else str(artifact.target)
    for further_parts in (
        _arguments(variants),
        _constants(variants),
        _options(artifacts),
        _lines(programs),
        _environment(artifacts),
    ):
        for parts, further in zip(parts_by_form, further_parts, strict=True):
            parts.update(further)
    return parts_by_form


def _arguments(variants: Sequence[Compiled]) -> Iterable[dict[KeyPart, str]]:
    """The type and specialisation of each argument; by position if the names are missing."""
    named = [_named(form.program) for form in variants]
    lengths = {len(types) for types in named if types is not None}
    if len(lengths) > 1 and any(types is not None and _is_numbered(types) for types in named):
        respect = KeyPart(KeyPartKind.SPECIALISATION, "number of arguments")
        yield from ({} if types is None else {respect: str(len(types))} for types in named)
        return
    if any(types is not None and _is_numbered(types) for types in named):
        names_with_source = next(
            (list(types) for types in named if types is not None and not _is_numbered(types)), None
        )
        named = [
            None if types is None else dict(zip(names_with_source or list(types), types.values(), strict=True))
            for types in named
        ]
    names = {name: kind for types in named if types is not None for name, kind in types.items()}
    for (artifact, _), types in zip(variants, named, strict=True):
        parts_of_form: dict[KeyPart, str] = {}
        for name in names if types is not None else ():
            assert types is not None
            kind, _, hint = types.get(name, "").partition(":")
            parts_of_form[KeyPart(KeyPartKind.DTYPE, name)] = kind if name in types else names[name].partition(":")[0]
            if name in types:
                parts_of_form[KeyPart(KeyPartKind.SPECIALISATION, name)] = f"÷{hint}" if hint else ANY
            else:
                constant = artifact.constants.get(name)
                parts_of_form[KeyPart(KeyPartKind.SPECIALISATION, name)] = (
                    ABSENT if name not in artifact.constants else f"the constant {constant}"
                )
        yield parts_of_form


def _named(program: KernelProgram | None) -> dict[str, str] | None:
    if program is None or len(program.arguments) != len(program.signature):
        return None
    return dict(zip(program.arguments, program.signature, strict=True))


def _is_numbered(named: Mapping[str, str]) -> bool:
    return any(name.removeprefix("arg").isdecimal() for name in named)


def _constants(variants: Sequence[Compiled]) -> Iterable[dict[KeyPart, str]]:
    """Constants from our record; the tiles if an entry has no record."""
    if not all(artifact.constants for artifact, _ in variants):
        respect = KeyPart(KeyPartKind.CONSTANT, "tiles")
        yield from ({} if program is None else {respect: ", ".join(program.tiles)} for _, program in variants)
        return
    arguments = {name for _, program in variants if program is not None for name in program.arguments}
    for artifact, _ in variants:
        yield {
            KeyPart(KeyPartKind.CONSTANT, name): str(value)
            for name, value in artifact.constants.items()
            if name not in arguments
        }


def _options(artifacts: Sequence[Artifact]) -> Iterable[dict[KeyPart, str]]:
    """Options that every entry has; options of one release or back end are left out."""
    options_by_entry = [read_options(artifact.metadata) for artifact in artifacts]
    shared = {name for name in OPTIONS if all(name in options for options in options_by_entry)}
    for options in options_by_entry:
        yield {KeyPart(KeyPartKind.OPTION, name): str(value) for name, value in options.items() if name in shared}


def _lines(programs: Sequence[KernelProgram | None]) -> Iterable[dict[KeyPart, str]]:
    """The line of the kernel's definition, part of Triton's key, if every entry has it."""
    respect = KeyPart(KeyPartKind.SOURCE, "line of its definition")
    locations = [None if program is None else program.location for program in programs]
    is_complete = None not in locations
    yield from ({respect: str(location.line)} if location is not None and is_complete else {} for location in locations)


def _environment(artifacts: Sequence[Artifact]) -> Iterable[dict[KeyPart, str]]:
    """Other metadata that differ within one target and version."""
    values: dict[tuple[str, str, str], set[str]] = {}
    metadata_by_entry = [
        {key: repr(value) for key, value in x.metadata.items() if key not in _RESULTS and key not in OPTIONS}
        for x in artifacts
    ]
    for artifact, metadata in zip(artifacts, metadata_by_entry, strict=True):
        for key, value in metadata.items():
            values.setdefault((str(artifact.target), str(artifact.triton_version), key), set()).add(value)
    varying = {key for (_, _, key), distinct in values.items() if len(distinct) > 1}
    for metadata in metadata_by_entry:
        yield {KeyPart(KeyPartKind.ENVIRONMENT, key): value for key, value in metadata.items() if key in varying}

"""Which kernels of two sides form a pair, and in what they may differ.

The identity of a kernel is its name, its signature, its tiles (a cache keeps no constexprs), its options, its
target and the version of Triton. A comparison across one of these lets only that one differ. Kernels with edited
source keep their name, signature and options, so different tiles and signatures are accepted last, and only if a
single kernel remains on each side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from hashlib import blake2b
from typing import ClassVar, NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.fact_pair import PairSide
from artifact_inspector.comparison.likeness import kinds_of
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.selection import read_program
from artifact_inspector.files.cache import Artifact, Problem, read_stage
from artifact_inspector.formats.canonical import canonical_text
from artifact_inspector.model import Stage
from artifact_inspector.model.string_enum import StringEnum
from artifact_inspector.model.text import split_option_values
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.options import SHARED_OPTIONS, read_options
from artifact_inspector.vocabulary.variant_labels import Compiled, label_form


class Axis(Enum):
    """What may differ between two kernels that are compared."""

    TARGET = "target"
    VERSION = "version"
    CONFIG = "config"
    """Tiles and options."""
    SOURCE = "source"
    """Name and signature."""


class Facet(StringEnum):
    """Properties besides the options in which two kernels may differ."""

    NAME = "name"
    TARGET = "target"
    VERSION = "Triton"
    SIGNATURE = "signature"
    TILES = "tiles"


class Difference(NamedTuple):
    """One property in which two kernels differ."""

    axis: Axis
    facet: str
    """A facet, or the name of an option."""
    left: Value
    right: Value


ProgramReader = Callable[[Artifact, list[Problem]], KernelProgram | None]
"""Returns arguments and tiles of a kernel; problems go to the list."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kernel of a side, with its identity."""

    artifact: Artifact
    problems: list[Problem] = field(default_factory=list)
    find_program: ProgramReader = read_program
    side_name: ClassVar[str] = PairSide.LEFT
    """What reports call the kernel where it is the left one."""

    @cached_property
    def program(self) -> KernelProgram | None:
        """Arguments and tiles by the first tensor-level stage."""
        return self.find_program(self.artifact, self.problems)

    @cached_property
    def fingerprint(self) -> str | None:
        """Of the canonical TTIR; None without a readable one."""
        return digest_of(self.artifact, Stage.TTIR)

    @cached_property
    def options(self) -> dict[str, Value]:
        """Options of the compile, from the metadata."""
        return read_options(self.artifact.metadata)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Its files that can be compared: kind → suffix."""
        return kinds_of(self.artifact.files)

    @property
    def target(self) -> str | None:
        """Architecture, None if unknown."""
        return None if self.artifact.target is None else str(self.artifact.target)

    def __str__(self) -> str:
        """Name, target, version, configuration and hash: enough to select it."""
        return self.describe(label_form(Compiled(self.artifact, self.program), {}))

    def describe(self, label: str) -> str:
        """The same with a label that distinguishes it from other variants."""
        artifact = self.artifact
        fields = [artifact.display_name, self.target or "target unknown"]
        fields += [f"Triton {artifact.triton_version}"] if artifact.triton_version else []
        return " · ".join([*fields, *([label] if label else []), artifact.hash[:12]])


def digest_of(artifact: Artifact, stage: Stage) -> str | None:
    """A digest of a stage's canonical text, which names, locations and numbering do not affect.

    None without a readable text.
    """
    if stage.value not in artifact.files:
        return None
    try:
        text = read_stage(artifact, stage.value).source.text
    except CacheError:
        return None
    return blake2b(canonical_text(text, stage).encode(errors="surrogatepass"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Matching:
    """The pairs of two sides, and the unmatched kernels."""

    pairs: tuple[tuple[Candidate, Candidate], ...]
    left: tuple[Candidate, ...]
    """Without a partner."""
    right: tuple[Candidate, ...]
    ambiguous: tuple[tuple[tuple[Candidate, ...], tuple[Candidate, ...]], ...]
    """Groups in which several pairs are possible."""
    across: frozenset[Axis]
    """What was allowed to differ."""


def match(
    left: Iterable[Artifact],
    right: Iterable[Artifact],
    across: Collection[Axis] = (),
    find_program: ProgramReader = read_program,
) -> Matching:
    """Pair the kernels of two sides.

    If the two sides have no target, or no version of Triton, in common, it may differ: otherwise nothing could
    be compared.

    Args:
        across: what may differ.
    """
    ours, theirs = ([Candidate(x, find_program=find_program) for x in side] for side in (left, right))
    return match_candidates(ours, theirs, frozenset(across) | _disjoint(ours, theirs))


def match_candidates(ours: Sequence[Candidate], theirs: Sequence[Candidate], allowed: frozenset[Axis]) -> Matching:
    """Pair the kernels of two sides, where only the allowed axes may differ."""
    pairs: list[tuple[Candidate, Candidate]] = []
    ambiguous: list[_Group] = []
    for key in _keys(allowed):
        for group in _groups(ours, theirs, key):
            matched, unmatched = _pair_up(group)
            pairs += matched
            if unmatched.left and unmatched.right:
                ambiguous.append(unmatched)  # a looser key cannot resolve what a strict one leaves open
        done = {id(x) for pair in pairs for x in pair}
        done |= {id(x) for group in ambiguous for x in (*group.left, *group.right)}
        ours, theirs = [x for x in ours if id(x) not in done], [x for x in theirs if id(x) not in done]
    pairs += _similar(ours, theirs, allowed)
    done = {id(x) for pair in pairs for x in pair}
    return Matching(
        tuple(sorted(pairs, key=lambda pair: str(pair[0]))),
        tuple(x for x in ours if id(x) not in done),
        tuple(x for x in theirs if id(x) not in done),
        tuple((group.left, group.right) for group in ambiguous),
        allowed,
    )


def pair_by_name(matching: Matching) -> Matching:
    """Pairs a kernel whose types or configuration changed, if each side has one left of that name and target."""
    groups = _groups(matching.left, matching.right, lambda x: (x.artifact.display_name, x.target))
    pairs = [(group.left[0], group.right[0]) for group in groups if len(group.left) == len(group.right) == 1]
    done = {id(x) for pair in pairs for x in pair}
    left, right = (tuple(x for x in side if id(x) not in done) for side in (matching.left, matching.right))
    return replace(matching, pairs=(*matching.pairs, *pairs), left=left, right=right)


def find_differences(left: Candidate, right: Candidate) -> tuple[Difference, ...]:
    """The properties in which two kernels differ: target, version, options, tiles, name, signature."""
    ours, theirs = left.program, right.program
    compared: list[tuple[Axis, str, Value, Value]] = [
        (Axis.SOURCE, Facet.NAME, left.artifact.display_name, right.artifact.display_name),
        (Axis.TARGET, Facet.TARGET, left.target, right.target),
        (Axis.VERSION, Facet.VERSION, left.artifact.triton_version, right.artifact.triton_version),
    ]
    if ours is not None and theirs is not None:
        compared.append((Axis.SOURCE, Facet.SIGNATURE, ours.signature, theirs.signature))
        compared.append((Axis.CONFIG, Facet.TILES, ours.tiles, theirs.tiles))
    compared += [
        (Axis.CONFIG, key, left.options[key], right.options[key]) for key in left.options if key in right.options
    ]
    return tuple(Difference(*entry) for entry in compared if entry[2] != entry[3])


def have_equal_work(left: Candidate, right: Candidate) -> bool:
    """Whether a CTA of one kernel does the work of one of the other: a launch of one is one of the other too.

    Their tiles agree, or the tiles that they store and their constants as far as recorded.
    """
    programs = left.program, right.program
    if programs[0] is None or programs[1] is None:
        return False
    stored = [{tile for tile in program.tiles if tile.startswith("store")} for program in programs if program]
    constants = left.artifact.constants, right.artifact.constants
    return programs[0].tiles == programs[1].tiles or (
        bool(stored[0])
        and stored[0] == stored[1]
        and all(constants[0][name] == constants[1][name] for name in constants[0].keys() & constants[1])
    )


def parse_axes(values: Iterable[str]) -> tuple[Axis, ...]:
    """Axes of repeated or comma-separated options.

    Raises:
        UsageError: a value is no axis.
    """
    axes = {axis.value: axis for axis in Axis}
    names = [value.lower() for value in split_option_values(values)]
    for name in names:
        if name not in axes:
            raise UsageError(f"Unknown axis {name!r} for --across.", f"Expected one of {', '.join(axes)}.")
    return tuple(axes[name] for name in names)


class _Group(NamedTuple):
    left: tuple[Candidate, ...]
    right: tuple[Candidate, ...]


_Key = Callable[[Candidate], Hashable]


def _disjoint(ours: Sequence[Candidate], theirs: Sequence[Candidate]) -> frozenset[Axis]:
    """Axes on which the two sides have nothing in common."""
    disjoint = set()
    for axis, of in _OF.items():
        our_values, their_values = {of(x) for x in ours}, {of(x) for x in theirs}
        is_disjoint = our_values.isdisjoint(their_values)
        if our_values - {None} and their_values - {None}:  # two unknown values have nothing in common
            is_disjoint = (our_values & their_values) <= {None}
        if our_values and their_values and is_disjoint:
            disjoint.add(axis)
    return frozenset(disjoint)


_OF: dict[Axis, Callable[[Candidate], str | None]] = {
    Axis.TARGET: lambda x: x.target,
    Axis.VERSION: lambda x: x.artifact.triton_version,
}


def _keys(allowed: frozenset[Axis]) -> Iterator[_Key]:
    """What must be equal: first the whole identity, then less if versions or targets differ."""
    yield lambda x: _key(x, allowed, signature=True, options=True)
    if allowed & {Axis.TARGET, Axis.VERSION}:  # defaults, and arguments of 1, may differ
        yield lambda x: _key(x, allowed, signature=False, options=True)
        yield lambda x: _key(x, allowed, signature=False, options=False)


def _key(x: Candidate, allowed: frozenset[Axis], *, signature: bool, options: bool) -> Hashable:
    values: list[Hashable] = [None if axis in allowed else of(x) for axis, of in _OF.items()]
    if Axis.SOURCE not in allowed:
        values.append(x.artifact.display_name)
        if signature:
            values.append(None if x.program is None else x.program.signature)
    if Axis.CONFIG not in allowed:
        values.append(None if x.program is None else frozenset(x.program.tiles))
        if options:
            names = SHARED_OPTIONS if allowed & set(_OF) else sorted(x.options)
            values += [(name, x.options.get(name)) for name in names]
    return tuple(values)


def _groups(ours: Sequence[Candidate], theirs: Sequence[Candidate], key: _Key) -> list[_Group]:
    sides: dict[Hashable, tuple[list[Candidate], list[Candidate]]] = {}
    for index, side in enumerate((ours, theirs)):
        for candidate in side:
            sides.setdefault(key(candidate), ([], []))[index].append(candidate)
    return [_Group(tuple(left), tuple(right)) for left, right in sides.values() if left and right]


def _pair_up(group: _Group) -> tuple[list[tuple[Candidate, Candidate]], _Group]:
    """Pairs of the same entry, of the same program, then the single remaining kernels; and the unpaired ones."""
    pairs = []
    left, right = list(group.left), list(group.right)
    for key in (_rank, lambda x: x.fingerprint or id(x)):
        if len(left) == len(right) == 1:
            break
        for same in _groups(left, right, key):
            if len(same.left) == len(same.right) == 1:
                pairs.append((same.left[0], same.right[0]))
                left.remove(same.left[0])
                right.remove(same.right[0])
    if len(left) == len(right) == 1:
        pairs.append((left.pop(), right.pop()))
    return pairs, _Group(tuple(left), tuple(right))


def _rank(x: Candidate) -> Hashable:
    """The cache entry: a cache that is compared with itself or a copy may have a kernel twice."""
    return (x.artifact.directory, x.artifact.stem, x.artifact.hash, tuple(sorted(x.artifact.files)))


def _similar(
    ours: Sequence[Candidate], theirs: Sequence[Candidate], allowed: frozenset[Axis]
) -> Iterator[tuple[Candidate, Candidate]]:
    """Pairs of one name whose edited source loads or stores different shapes."""

    def key(x: Candidate) -> Hashable:
        return (
            x.artifact.display_name,
            *(None if axis in allowed else of(x) for axis, of in _OF.items()),
            *(x.options.get(name) for name in SHARED_OPTIONS if not allowed & {Axis.CONFIG, *_OF}),
        )

    for group in _groups(ours, theirs, key):
        if len(group.left) == len(group.right) == 1 and _is_similar(group.left[0], group.right[0], allowed):
            yield group.left[0], group.right[0]


def _is_similar(left: Candidate, right: Candidate, allowed: frozenset[Axis]) -> bool:
    """The same dots, and at least half of all shapes in common; the same arguments in one version."""
    if left.program is None or right.program is None:
        return True
    if left.program.signature != right.program.signature and Axis.VERSION not in allowed:
        return False
    our_tiles, their_tiles = set(left.program.tiles), set(right.program.tiles)
    dots = {tile for tile in our_tiles ^ their_tiles if tile.is_dot}
    return not dots and 2 * len(our_tiles & their_tiles) >= len(our_tiles | their_tiles)

"""What locating a region's rounds yields: their loads and computes as instructions of one stage."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from artifact_inspector.analysis.order.facts import Note
from artifact_inspector.analysis.order.reference import LoadStatement
from artifact_inspector.model import Basis, EventKind, SourceLine, Verdict
from artifact_inspector.model.limits import ROUNDS

Identity = tuple[frozenset[int], frozenset[int], bool]
"""Of a round, the load statements and direct computes of the program that a stage was found to hold, and
whether some of these are part of an instruction that does a later one."""
Identities = tuple[Identity | None, ...]
Line = tuple[frozenset[Hashable], ...]
"""Loads and computes in execution order; loads that are next to each other are one set."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the stage before said of a region: back ends blur what was plain there."""

    loads: dict[int, int]
    """Load instructions in the region, by statement."""
    computes: dict[int, int]
    """Direct computes, by round."""
    distances: dict[int, int]
    """Iterations ahead, by statement."""
    unrolled_by: int
    verdict: Verdict | None = None
    """The last that spoke of the order of rounds."""
    identities: Identities | None = None
    """What that verdict was told of."""
    line: Line = ()
    """The loads and computes that it was told beside, loads that stand together in no order."""
    kinds: Mapping[int, frozenset[EventKind]] = field(default_factory=dict)
    """What kinds of loads there were in the region, by statement."""
    rounds: Mapping[int, int] = field(default_factory=dict)
    """Loads and direct computes of the stage, by their index, with the number of their round from 1 on."""


@dataclass(slots=True)
class LocatedStatement:
    """A load statement with its instructions at this stage, in execution order."""

    statement: LoadStatement
    loads: list[int] = field(default_factory=list)
    """Inside the region."""
    front: list[int] = field(default_factory=list)
    """In front of the loop: its prologue copies, or where a hoisted load went."""
    merged: bool = False
    """Its load became part of a neighbour's wider one."""
    guessed: bool = False
    """Its loads do not bear its place, or share it with too few: another statement's may be among them."""


@dataclass(slots=True)
class LocatedRound:
    """A round with its loads and direct computes at this stage."""

    statements: list[LocatedStatement]
    computes: list[int] = field(default_factory=list)
    front_computes: list[int] = field(default_factory=list)
    found: frozenset[int] | None = None
    """The direct computes of the program that stand here; None where nothing tells which they are."""
    contracted: bool = False
    """Some stand in a consumer that does their work as well."""

    @property
    def identity(self) -> Identity | None:
        """The load statements and direct computes of the program that were found; None for a guess."""
        present = [found for found in self.statements if found.loads]
        if self.found is None or any(found.merged or found.guessed for found in present):
            return None
        return frozenset(found.statement.index for found in present), self.found, self.contracted

    @property
    def loads(self) -> list[int]:
        """Load instructions of all its statements."""
        return sorted({load for statement in self.statements for load in statement.loads})

    @property
    def has_loads(self) -> bool:
        """True where a load of it was found inside the region."""
        return any(statement.loads for statement in self.statements)

    @property
    def sources(self) -> list[SourceLine]:
        """Lines of its load statements in the user's code."""
        return [s.statement.source for s in self.statements if s.statement.source is not None]

    @property
    def is_hoisted(self) -> bool:
        """True where a load of it stands in front of the loop."""
        return any(found.front for found in self.statements)


@dataclass(frozen=True, slots=True)
class Placement:
    """All rounds of one region at one stage."""

    rounds: list[LocatedRound]
    other: list[str]
    basis: Basis
    notes: list[Note] = field(default_factory=list)
    uncertain: bool = False
    """Something did not fit; no order can be told from it."""


def too_many_rounds() -> Placement:
    """Of a region with more rounds than are told apart."""
    said = f"it has more than {ROUNDS.most:,} rounds, which are not told apart: set {ROUNDS.switch}"
    return Placement([], [], Basis.DATAFLOW, [Note(said)], uncertain=True)


def sources_of(statements: Sequence[LoadStatement]) -> list[str]:
    """The statements as `file.py:line`, or by name where there are no lines."""
    return [s.source if s.source is not None else s.name or "?" for s in statements]

"""The loads and computes of a region's rounds, as instructions of one stage."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from artifact_inspector.analysis.order.reference_regions import LoadStatement
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.model import Basis, EventKind, OrderVerdict, SourceLine
from artifact_inspector.model.limits import ROUNDS

RoundIdentity = tuple[frozenset[int], frozenset[int], bool]
"""Per round: its load statements and direct computes found at a stage, and whether some computes are part of a later
instruction.
"""
RoundIdentities = tuple[RoundIdentity | None, ...]
Line = tuple[frozenset[Hashable], ...]
"""Loads and computes in execution order; loads that are next to each other are one set."""


@dataclass(frozen=True, slots=True)
class PreviousStage:
    """The results of the previous stage for a region. Back ends lose information that was present there."""

    loads: dict[int, int]
    """Load instructions in the region, by statement."""
    computes: dict[int, int]
    """Direct computes, by round."""
    distances: dict[int, int]
    """Iterations ahead, by statement."""
    unroll_factor: int
    verdict: OrderVerdict | None = None
    """The last verdict on the order of rounds."""
    identities: RoundIdentities | None = None
    """The loads and computes that this verdict was based on."""
    event_sequence: Line = ()
    """The sequence of loads and computes behind that verdict, with adjacent loads unordered."""
    kinds: Mapping[int, frozenset[EventKind]] = field(default_factory=dict)
    """Kinds of the loads in the region, by statement."""
    rounds: Mapping[int, int] = field(default_factory=dict)
    """Instruction index → number of its round (from 1), for the loads and direct computes of the stage."""


@dataclass(slots=True)
class LocatedStatement:
    """A load statement with its instructions at this stage, in execution order."""

    program: LoadStatement
    loads: list[int] = field(default_factory=list)
    """Inside the region."""
    loads_before_loop: list[int] = field(default_factory=list)
    """Before the loop: prologue copies, or a hoisted load."""
    is_merged: bool = False
    """Its load became part of a neighbour's wider one."""
    is_uncertain: bool = False
    """Its loads do not carry its location, or share it with others: some may belong to another statement."""


@dataclass(slots=True)
class LocatedRound:
    """A round with its loads and direct computes at this stage."""

    statements: list[LocatedStatement]
    computes: list[int] = field(default_factory=list)
    computes_before_loop: list[int] = field(default_factory=list)
    identified_computes: frozenset[int] | None = None
    """The program's direct computes located here; None if they cannot be identified."""
    is_contracted: bool = False
    """Some computes are located in a consumer that performs their work as well."""

    @property
    def identity(self) -> RoundIdentity | None:
        """The load statements and direct computes of the program that were found; None if uncertain."""
        present = [statement for statement in self.statements if statement.loads]
        if self.identified_computes is None or any(s.is_merged or s.is_uncertain for s in present):
            return None
        return frozenset(s.program.index for s in present), self.identified_computes, self.is_contracted

    @property
    def loads(self) -> list[int]:
        """Load instructions of all its statements."""
        return sorted({load for statement in self.statements for load in statement.loads})

    @property
    def has_loads(self) -> bool:
        """True if a load of the round was found inside the region."""
        return any(statement.loads for statement in self.statements)

    @property
    def sources(self) -> list[SourceLine]:
        """Lines of its load statements in the user's code."""
        return [s.program.source for s in self.statements if s.program.source is not None]

    @property
    def is_hoisted(self) -> bool:
        """True if a load of the round is before the loop."""
        return any(statement.loads_before_loop for statement in self.statements)


@dataclass(frozen=True, slots=True)
class Placement:
    """All rounds of one region at one stage."""

    rounds: list[LocatedRound]
    unassigned: list[str]
    basis: Basis
    notes: list[RegionNote] = field(default_factory=list)
    is_uncertain: bool = False
    """A number did not fit, so no order can be reported."""


def too_many_rounds() -> Placement:
    """The placement of a region with more rounds than the limit."""
    message = f"it has more than {ROUNDS.value:,} rounds, the limit of the analysis: set {ROUNDS.variable} to raise it"
    return Placement([], [], Basis.DATAFLOW, [RegionNote(message)], is_uncertain=True)


def sources_of(statements: Sequence[LoadStatement]) -> list[str]:
    """The statements as `file.py:line`, or by name where there are no lines."""
    return [s.source if s.source is not None else s.name or "?" for s in statements]

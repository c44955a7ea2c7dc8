"""The order verdict of a region: how its loads and computes are arranged.

docs/verdicts.md has the definitions. This module implements only these.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.mutual_exclusion import find_exclusive
from artifact_inspector.analysis.order.placement import (
    Line,
    LocatedRound,
    LocatedStatement,
    Placement,
    PreviousStage,
    RoundIdentities,
    RoundIdentity,
)
from artifact_inspector.analysis.order.prefetch import LoopPrefetch, measure_prefetch
from artifact_inspector.analysis.order.region_facts import RegionFacts, RegionNote, RoundFacts, signature_of
from artifact_inspector.analysis.order.regions import Region, count_with_trait, find_in_region
from artifact_inspector.analysis.order.round_locator import locate_rounds
from artifact_inspector.analysis.order.round_sequence import RoundSequence, compare_rounds
from artifact_inspector.model import COMPUTES, LOADS, Basis, EventKind, OrderVerdict, RegionKind, SourceLine, Trait

_MATRIX = frozenset({EventKind.MATRIX})
_SIGNATURE_KINDS = frozenset(kind for kind in EventKind if kind.letter)


class _Event(NamedTuple):
    """A load or compute of a round."""

    letter: str
    name: str
    """Of the loaded value; empty for a compute."""

    def __str__(self) -> str:
        return f"{self.letter}({self.name})" if self.name else self.letter


def judge_region(
    code: FunctionCode, region: Region, previous: PreviousStage | None, *, exact: bool
) -> tuple[RegionFacts, PreviousStage]:
    """The facts of one region, and what the next stage needs to know about it.

    Args:
        previous: results of the previous stage; None at the first.
        exact: the stage is the one that the reference was read from.
    """
    placement = locate_rounds(code, region, previous, exact=exact)
    judgement = _Judgement(code, region, placement, previous)
    return judgement.facts(), judgement.summary()


class _Judgement:
    """The verdict on one region, with the notes and details that go with it."""

    def __init__(
        self, code: FunctionCode, region: Region, placement: Placement, previous: PreviousStage | None
    ) -> None:
        self.code = code
        self.region = region
        self.placement = placement
        self.previous = previous
        self.notes = list(placement.notes)
        self.prefetch = LoopPrefetch()
        self.sequence = RoundSequence()
        self.exclusive = self._exclusive()
        self.line = tuple(self._line())
        self.verdict = self._verdict()
        if not code.is_complete:
            self.verdict = self._truncated_verdict(self.verdict)
        self.order_changed = self._find_order_change()

    def facts(self) -> RegionFacts:
        code, region = self.code, self.region
        instructions = code.function.instructions
        return RegionFacts(
            id=region.id,
            kind=region.kind,
            depth=region.depth,
            parent=region.parent,
            lines=self._lines(),
            signature=signature_of(map(instructions.__getitem__, find_in_region(code, region, _SIGNATURE_KINDS))),
            named_signature=" ".join(map(str, self.line)),
            verdict=self.verdict,
            distance=self.prefetch.distance if self.prefetch.ahead_statements else self.sequence.distance,
            basis=self.placement.basis,
            pairs=self.sequence.pairs,
            exclusive=tuple((first + 1, second + 1) for first, second in self.exclusive),
            rounds=tuple(self._round(located_round) for located_round in self.placement.rounds),
            unassigned=tuple(self.placement.unassigned),
            matrix=len(find_in_region(code, region, _MATRIX)),
            fused_multiply_adds=count_with_trait(code, region, EventKind.FLOAT, Trait.FUSED),
            unroll_factor=self.prefetch.unroll_factor,
            groups=self.sequence.groups,
            order_changed=self.order_changed,
            copy_position=self.prefetch.load_position if self.prefetch.ahead_statements else None,
            region_notes=tuple(dict.fromkeys(self.notes)),
            is_in_program=region.reference is not None or region.kind is not RegionKind.LOOP,
            counts=self._counts(),
        )

    def summary(self) -> PreviousStage:
        statements = [
            located_statement
            for located_round in self.placement.rounds
            for located_statement in located_round.statements
        ]
        return PreviousStage(
            {located_statement.statement.index: len(located_statement.loads) for located_statement in statements},
            {number: len(located_round.computes) for number, located_round in enumerate(self.placement.rounds)},
            {s.statement.index: self.prefetch.distances.get(s.statement.index, 0) for s in statements},
            self.prefetch.unroll_factor,
            *self._last_order(),
            {located_statement.statement.index: self._kinds(located_statement) for located_statement in statements},
            {
                index: number
                for number, located_round in enumerate(self.placement.rounds, 1)
                for index in (*located_round.loads, *located_round.computes)
            },
        )

    def _kinds(self, located_statement: LocatedStatement) -> frozenset[EventKind]:
        instructions = self.code.function.instructions
        return frozenset(
            instructions[index].kind for index in (*located_statement.loads, *located_statement.loads_before_loop)
        )

    def _last_order(self) -> tuple[OrderVerdict | None, RoundIdentities | None, Line]:
        """The last verdict on the order of rounds, the work behind it, and the sequence of events."""
        if self.verdict.is_order_verdict:
            return self.verdict, self._identities(), _shape_of(self.line)
        previous = self.previous
        return (
            (None, None, ()) if previous is None else (previous.verdict, previous.identities, previous.event_sequence)
        )

    def _identities(self) -> RoundIdentities:
        return tuple(located_round.identity for located_round in self.placement.rounds)

    def _find_order_change(self) -> bool | None:
        """Whether the order of rounds differs from the previous stage; None if unknown.

        Only the same statements are compared: the positions of other loads or computes say nothing about order. A
        change that the sequence of loads and computes does not show is not reported.
        """
        if self.previous is None or self.previous.verdict is None or not self.verdict.is_order_verdict:
            return False
        if self.previous.verdict is self.verdict:
            return False
        return True if self._is_same_work() else None

    def _is_same_work(self) -> bool:
        """Whether this stage and the previous one hold the same loads and computes."""
        assert self.previous is not None
        current_identities, previous_identities = self._identities(), self.previous.identities
        if previous_identities is None or len(current_identities) != len(previous_identities):
            self._note_unknown_change("the rounds differ")
            return False
        for number, (current_identity, previous_identity) in enumerate(
            zip(current_identities, previous_identities, strict=True), 1
        ):
            if current_identity is None or previous_identity is None:
                self._note_unknown_change(f"the loads and computes of round {number} are uncertain")
                return False
            # If every load precedes every compute, it also precedes a later instruction that includes one.
            exactly = self.verdict is not OrderVerdict.CLUSTERED
            if current_identity[:2] != previous_identity[:2] or (exactly and current_identity != previous_identity):
                self._note_unknown_change(_difference(number, current_identity, previous_identity))
                return False
        if self.previous.event_sequence == _shape_of(self.line):
            self._note_unknown_change("the sequence of loads and computes is the same")
            return False
        return True

    def _note_unknown_change(self, reason: str) -> None:
        self.notes.append(RegionNote(f"unknown whether the order has changed: {reason}"))

    def _lines(self) -> tuple[int, int]:
        """First and last line of the region; the function's own line if the region is empty."""
        function, remains = self.code.function, self.region.residue
        if remains is None:
            blocks = [function.blocks[block] for block in self.region.blocks]
            ends = [end for x in blocks if x.start < x.stop for end in (x.start, x.stop - 1)]
        else:
            ends = list(remains)
        if not ends:
            return function.line, function.line
        return function.instructions[min(ends)].line, function.instructions[max(ends)].line

    # -- the verdict -----------------------------------------------------------------

    def _verdict(self) -> OrderVerdict:
        rounds = self.placement.rounds
        if self.placement.is_uncertain:
            return OrderVerdict.UNKNOWN
        if self.region.is_specialised:
            return OrderVerdict.WARP_SPECIALISED
        if self.region.residue is not None:
            return self._dissolved_loop_verdict()
        if not rounds:
            return self._verdict_without_rounds()
        if self.region.loop is not None:
            looped = self._pipelining_verdict(rounds)
            if looped is not None:
                return looped
        return self._sequence_verdict(rounds)

    def _truncated_verdict(self, verdict: OrderVerdict) -> OrderVerdict:
        """The verdict on a truncated file: unknown if the owner of a load cannot be determined."""
        rounds = self.placement.rounds
        self.notes.append(RegionNote("the file is truncated: missing parts may change the result"))
        if self.region.reference is None or all(located_round.identity is not None for located_round in rounds):
            return verdict
        self.sequence = RoundSequence()
        self.prefetch.ahead_statements.clear()
        return OrderVerdict.UNKNOWN

    def _pipelining_verdict(self, rounds: list[LocatedRound]) -> OrderVerdict | None:
        """Pipelined or partly pipelined; None if every load serves its own iteration."""
        self.prefetch = prefetch = measure_prefetch(self.code, rounds, self.previous)
        self.notes += prefetch.notes
        if prefetch.is_uncertain:
            prefetch.ahead_statements.clear()
            return OrderVerdict.UNKNOWN
        if not prefetch.ahead_statements:
            return None
        if not prefetch.same_iteration_statements:
            return OrderVerdict.PIPELINED
        names = ", ".join(located_statement.statement.label for located_statement in prefetch.same_iteration_statements)
        self.notes.append(RegionNote(f"loaded in the iteration that uses it: {names}"))
        return OrderVerdict.PARTLY_PIPELINED

    def _sequence_verdict(self, rounds: list[LocatedRound]) -> OrderVerdict:
        is_loop = self.region.loop is not None
        numbered = {
            number: located_round
            for number, located_round in enumerate(rounds)
            if located_round.has_loads or not (is_loop and located_round.is_hoisted)
        }
        if not numbered:
            return OrderVerdict.NO_LOADS
        for located_round in numbered.values():
            for located_statement in located_round.statements if located_round.has_loads else ():
                if (
                    not located_statement.loads
                    and not located_statement.loads_before_loop
                    and not located_statement.statement.is_index
                ):
                    self.notes.append(
                        RegionNote(f"no load of {located_statement.statement.label} was found at this stage")
                    )
        incomplete = {
            n: located_round
            for n, located_round in numbered.items()
            if not located_round.has_loads or not located_round.computes
        }
        if incomplete:
            return self._incomplete_verdict(incomplete)
        position = self.code.flow.position
        if self.exclusive:
            pairs = ", ".join(f"{first + 1} and {second + 1}" for first, second in self.exclusive)
            self.notes.append(RegionNote(f"no path executes both of these rounds, so they have no order: {pairs}"))
        sequence = compare_rounds(position, numbered, self.exclusive, self.prefetch.unroll_factor)
        if sequence is None:
            return OrderVerdict.SERIAL if is_loop else OrderVerdict.SINGLE
        self.sequence = sequence
        return sequence.verdict

    def _exclusive(self) -> tuple[tuple[int, int], ...]:
        """Pairs of rounds that exclude each other, from the program if known, else from the stage."""
        if self.region.reference is not None:
            return self.region.reference.exclusive
        block_of = self.code.flow.block_of
        block_sets = [{block_of[index] for index in located_round.computes} for located_round in self.placement.rounds]
        return tuple(find_exclusive(self.code.function, self.code.flow, self.region.loop, block_sets))

    def _dissolved_loop_verdict(self) -> OrderVerdict:
        works = find_in_region(self.code, self.region, LOADS | COMPUTES)
        if not self.code.is_complete:
            self.notes.append(RegionNote("the file is truncated and does not contain this loop"))
            return OrderVerdict.UNKNOWN
        reference = self.region.reference
        if reference is not None and reference.is_flattened:
            self.notes.append(RegionNote("flattened into one loop with the loop inside it"))
        if reference is not None and not reference.rounds:
            return OrderVerdict.NO_COMPUTE if reference.unassigned_loads else OrderVerdict.NO_LOADS
        if self._is_split():
            self.notes.append(
                RegionNote("the loop was split: its loads and computes are in different loops at this stage")
            )
            return OrderVerdict.UNKNOWN
        if works or not (self.code.flow.loops or self.code.max_chain_length):
            return OrderVerdict.UNROLLED
        if not self.code.max_chain_length:
            self.notes.append(
                RegionNote("no loop at this stage was matched to this one: there are no source lines to match by")
            )
            return OrderVerdict.UNKNOWN
        return OrderVerdict.GONE

    def _is_split(self) -> bool:
        """True if the remaining loads and computes of a loop are in separate loops."""
        flow = self.code.flow
        loads = {flow.loop_at(i) for i in find_in_region(self.code, self.region, LOADS)}
        computes = {flow.loop_at(i) for i in find_in_region(self.code, self.region, COMPUTES)}
        return bool(loads and computes) and all(
            a is not None and b is not None and flow.loops[a].blocks.isdisjoint(flow.loops[b].blocks)
            for a in loads
            for b in computes
        )

    def _computes_in_another_loop(self) -> bool:
        """True if computes of this loop are in a loop that is not inside it."""
        reference, flow = self.region.reference, self.code.flow
        if reference is None or self.region.loop is None:
            return False
        computes = (compute for reference_round in reference.rounds for compute in reference_round.computes)
        chains = {self.code.visible_chain(chain) for compute in computes for chain in compute.chains[0]}
        return any(
            flow.loop_at(index) is not None and flow.block_of[index] not in self.region.enclosed_blocks
            for chain in chains
            if chain is not None
            for index in self.code.computes_at.get(chain, ())
        )

    def _verdict_without_rounds(self) -> OrderVerdict:
        if self.placement.unassigned:
            return OrderVerdict.NO_COMPUTE
        # Loads of other regions may be here, so for a program loop the program decides.
        has_loads = bool(find_in_region(self.code, self.region, LOADS))
        return OrderVerdict.NO_COMPUTE if has_loads and self.region.reference is None else OrderVerdict.NO_LOADS

    def _incomplete_verdict(self, rounds: dict[int, LocatedRound]) -> OrderVerdict:
        by_place = self.placement.basis is Basis.SOURCE and self.code.is_complete
        computes = self.code.find(COMPUTES, self.region.enclosed_blocks)
        if by_place and len(rounds) == len(self.placement.rounds) and not computes:
            if not self._computes_in_another_loop():
                return OrderVerdict.GONE
            self.notes.append(RegionNote("its computes are in another loop"))
        for number, located_round in rounds.items():
            lacks = "load" if not located_round.has_loads else "compute"
            self.notes.append(
                RegionNote(f"round {number + 1} ({', '.join(located_round.sources)}): no {lacks} found at this stage")
            )
        return OrderVerdict.UNKNOWN

    # -- rendering ---------------------------------------------------------------------

    def _round(self, located_round: LocatedRound) -> RoundFacts:
        instructions = self.code.function.instructions
        loads = sorted(located_round.loads, key=self.code.flow.position.__getitem__)
        return RoundFacts(
            loads=len(loads),
            first_load=instructions[loads[0]].line if loads else None,
            last_load=instructions[loads[-1]].line if loads else None,
            first_compute=instructions[located_round.computes[0]].line if located_round.computes else None,
            last_compute=instructions[located_round.computes[-1]].line if located_round.computes else None,
            sources=tuple(dict.fromkeys(located_round.sources)),
            names=tuple(dict.fromkeys(s.statement.name for s in located_round.statements if s.statement.name)),
            shared=tuple(s.statement.label for s in located_round.statements if s.statement.is_shared),
            distances=tuple(self.prefetch.distances.get(s.statement.index, 0) for s in located_round.statements),
        )

    def _counts(self) -> dict[str, int]:
        """Kind → instructions of that kind directly in the region."""
        function, remains = self.code.function, self.region.residue
        counts: Counter[EventKind] = Counter()
        if remains is not None:
            counts.update(function.instructions[index].kind for index in remains)
        blocks = self.region.blocks & self.code.rank.keys() if remains is None else ()
        for number in blocks:
            block = function.blocks[number]
            counts.update(map(attrgetter("kind"), function.instructions[block.start : block.stop]))
        return {kind.count_name: counts[kind] for kind in EventKind if counts[kind]}

    def _line(self) -> list[_Event]:
        """The loads and computes of the rounds in execution order, each run of equal events once."""
        names: dict[int, str] = {}
        direct: set[int] = set()
        for item in self.placement.rounds:
            direct.update(item.computes)
            for located_statement in item.statements:
                name = located_statement.statement.name or _line_of(located_statement.statement.source)
                names.update(dict.fromkeys(located_statement.loads, name))
        block_of, instructions = self.code.flow.block_of, self.code.function.instructions
        # The region holds its loads directly; its computes may be in a loop inside.
        own_events = {index for index in names if block_of[index] in self.region.scope}
        own_events |= {index for index in direct if block_of[index] in self.region.enclosed_blocks}
        events: list[_Event] = []
        for index in sorted(own_events, key=self.code.flow.position.__getitem__):
            kind = instructions[index].kind
            letter = "I" if kind is EventKind.INTEGER else kind.letter
            # a scalar load has no letter
            event = _Event(letter or "L", names[index]) if index in names else _Event(letter, "")
            if not events or events[-1] != event:
                events.append(event)
        return events


def _difference(number: int, current: RoundIdentity, previous: RoundIdentity) -> str:
    """How the parts of a round found here differ from those found at the previous stage."""
    if current[:2] == previous[:2]:
        return f"at one of the two stages, computes of round {number} are part of later instructions"
    work_kind = "loads" if current[0] != previous[0] else "computes"
    return f"the {work_kind} found for round {number} differ from those of the previous stage"


def _shape_of(events: tuple[_Event, ...]) -> Line:
    """A line of loads and computes in which loads that are next to each other have no order."""
    runs: list[set[_Event]] = []
    for event in events:
        if runs and event.name and next(iter(runs[-1])).name:
            runs[-1].add(event)
        elif not runs or event.name or runs[-1] != {event}:
            runs.append({event})
    return tuple(map(frozenset, runs))


def _line_of(source: SourceLine | None) -> str:
    return "?" if source is None else str(source.number)

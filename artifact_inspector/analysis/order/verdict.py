"""The order verdict of a region: how its loads and computes are arranged.

docs/verdicts.md has the definitions. This module implements only these.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.exclusive import find_exclusive
from artifact_inspector.analysis.order.ahead import Ahead, measure_ahead
from artifact_inspector.analysis.order.facts import Note, RegionFacts, RoundFacts, signature_of
from artifact_inspector.analysis.order.locate import locate
from artifact_inspector.analysis.order.placement import (
    Identities,
    Identity,
    Line,
    LocatedRound,
    LocatedStatement,
    Memory,
    Placement,
)
from artifact_inspector.analysis.order.regions import Region, count_with_trait, find_in_region
from artifact_inspector.analysis.order.sequence import Sequence, compare_rounds
from artifact_inspector.model import COMPUTES, LOADS, Basis, EventKind, RegionKind, SourceLine, Trait, Verdict

_MATRIX = frozenset({EventKind.MATRIX})
_TOLD = frozenset(kind for kind in EventKind if kind.letter)


class _Event(NamedTuple):
    """A load or compute of a round."""

    letter: str
    name: str
    """Of the loaded value; empty for a compute."""

    def __str__(self) -> str:
        return f"{self.letter}({self.name})" if self.name else self.letter


def judge(code: Code, region: Region, before: Memory | None, *, exact: bool) -> tuple[RegionFacts, Memory]:
    """The facts of one region, and what the next stage needs to know about it.

    Args:
        before: results of the previous stage; None at the first.
        exact: the stage is the one that the reference was read from.
    """
    placement = locate(code, region, before, exact=exact)
    judgement = _Judgement(code, region, placement, before)
    return judgement.facts(), judgement.memory()


class _Judgement:
    """The verdict on one region, with the notes and details that go with it."""

    def __init__(self, code: Code, region: Region, placement: Placement, before: Memory | None) -> None:
        self.code = code
        self.region = region
        self.placement = placement
        self.before = before
        self.notes = list(placement.notes)
        self.loop = Ahead()
        self.sequence = Sequence()
        self.exclusive = self._exclusive()
        self.line = tuple(self._line())
        self.verdict = self._verdict()
        if not code.is_whole:
            self.verdict = self._of_a_part(self.verdict)
        self.changed = self._changed()

    def facts(self) -> RegionFacts:
        code, region = self.code, self.region
        instructions = code.function.instructions
        return RegionFacts(
            id=region.id,
            kind=region.kind,
            depth=region.depth,
            parent=region.parent,
            lines=self._lines(),
            signature=signature_of(map(instructions.__getitem__, find_in_region(code, region, _TOLD))),
            readable=" ".join(map(str, self.line)),
            verdict=self.verdict,
            distance=self.loop.distance if self.loop.ahead else self.sequence.distance,
            basis=self.placement.basis,
            pairs=self.sequence.pairs,
            exclusive=tuple((one + 1, other + 1) for one, other in self.exclusive),
            rounds=tuple(self._round(item) for item in self.placement.rounds),
            other=tuple(self.placement.other),
            matrix=len(find_in_region(code, region, _MATRIX)),
            fused=count_with_trait(code, region, EventKind.FLOAT, Trait.FUSED),
            unrolled_by=self.loop.unrolled_by,
            groups=self.sequence.groups,
            changed=self.changed,
            copies_stand=self.loop.stand if self.loop.ahead else None,
            noted=tuple(dict.fromkeys(self.notes)),
            in_program=region.reference is not None or region.kind is not RegionKind.LOOP,
            counts=self._counts(),
        )

    def memory(self) -> Memory:
        statements = [found for item in self.placement.rounds for found in item.statements]
        return Memory(
            {found.statement.index: len(found.loads) for found in statements},
            {number: len(item.computes) for number, item in enumerate(self.placement.rounds)},
            {s.statement.index: self.loop.distances.get(s.statement.index, 0) for s in statements},
            self.loop.unrolled_by,
            *self._last_order(),
            {found.statement.index: self._kinds(found) for found in statements},
            {
                index: number
                for number, item in enumerate(self.placement.rounds, 1)
                for index in (*item.loads, *item.computes)
            },
        )

    def _kinds(self, found: LocatedStatement) -> frozenset[EventKind]:
        instructions = self.code.function.instructions
        return frozenset(instructions[index].kind for index in (*found.loads, *found.front))

    def _last_order(self) -> tuple[Verdict | None, Identities | None, Line]:
        """The last verdict on the order of rounds, the work behind it, and the sequence of events."""
        if self.verdict.is_of_order:
            return self.verdict, self._identities(), _shape_of(self.line)
        before = self.before
        return (None, None, ()) if before is None else (before.verdict, before.identities, before.line)

    def _identities(self) -> Identities:
        return tuple(item.identity for item in self.placement.rounds)

    def _changed(self) -> bool | None:
        """Whether the order of rounds differs from the previous stage; None if unknown.

        Only the same statements are compared: the positions of other loads or computes say nothing about
        order. A change that the sequence of loads and computes does not show is not reported.
        """
        if self.before is None or self.before.verdict is None or not self.verdict.is_of_order:
            return False
        if self.before.verdict is self.verdict:
            return False
        return True if self._is_same_work() else None

    def _is_same_work(self) -> bool:
        """Whether this stage and the previous one hold the same loads and computes."""
        assert self.before is not None
        here, there = self._identities(), self.before.identities
        if there is None or len(here) != len(there):
            self._note_unknown_change("the rounds differ")
            return False
        for number, (one, other) in enumerate(zip(here, there, strict=True), 1):
            if one is None or other is None:
                self._note_unknown_change(f"the loads and computes of round {number} are uncertain")
                return False
            # If every load precedes every compute, it also precedes a later instruction that includes
            # one.
            exactly = self.verdict is not Verdict.CLUSTERED
            if one[:2] != other[:2] or (exactly and one != other):
                self._note_unknown_change(_difference(number, one, other))
                return False
        if self.before.line == _shape_of(self.line):
            self._note_unknown_change("the sequence of loads and computes is the same")
            return False
        return True

    def _note_unknown_change(self, reason: str) -> None:
        self.notes.append(Note(f"unknown whether the order has changed: {reason}"))

    def _lines(self) -> tuple[int, int]:
        """First and last line of the region; the function's own line if the region is empty."""
        function, remains = self.code.function, self.region.remains
        if remains is None:
            blocks = [function.blocks[block] for block in self.region.blocks]
            ends = [end for x in blocks if x.start < x.stop for end in (x.start, x.stop - 1)]
        else:
            ends = list(remains)
        if not ends:
            return function.line, function.line
        return function.instructions[min(ends)].line, function.instructions[max(ends)].line

    # -- the verdict -----------------------------------------------------------------

    def _verdict(self) -> Verdict:
        rounds = self.placement.rounds
        if self.placement.uncertain:
            return Verdict.UNKNOWN
        if self.region.computes_elsewhere:
            return Verdict.WARP_SPECIALISED
        if self.region.remains is not None:
            return self._without_loop()
        if not rounds:
            return self._without_rounds()
        if self.region.loop is not None:
            looped = self._looped(rounds)
            if looped is not None:
                return looped
        return self._in_sequence(rounds)

    def _of_a_part(self, verdict: Verdict) -> Verdict:
        """The verdict on a truncated file: unknown if the owner of a load cannot be determined."""
        rounds = self.placement.rounds
        self.notes.append(Note("the file is truncated: missing parts may change the result"))
        if self.region.reference is None or all(item.identity is not None for item in rounds):
            return verdict
        self.sequence = Sequence()
        self.loop.ahead.clear()
        return Verdict.UNKNOWN

    def _looped(self, rounds: list[LocatedRound]) -> Verdict | None:
        """Pipelined or partly pipelined; None if every load serves its own iteration."""
        self.loop = loop = measure_ahead(self.code, rounds, self.before)
        self.notes += loop.notes
        if loop.uncertain:
            loop.ahead.clear()
            return Verdict.UNKNOWN
        if not loop.ahead:
            return None
        if not loop.same:
            return Verdict.PIPELINED
        names = ", ".join(found.statement.label for found in loop.same)
        self.notes.append(Note(f"loaded in the iteration that uses it: {names}"))
        return Verdict.PARTLY_PIPELINED

    def _in_sequence(self, rounds: list[LocatedRound]) -> Verdict:
        is_loop = self.region.loop is not None
        numbered = {
            number: item
            for number, item in enumerate(rounds)
            if item.has_loads or not (is_loop and item.is_hoisted)
        }
        if not numbered:
            return Verdict.NO_LOADS
        for item in numbered.values():
            for found in item.statements if item.has_loads else ():
                if not found.loads and not found.front and not found.statement.is_index:
                    self.notes.append(Note(f"no load of {found.statement.label} was found at this stage"))
        incomplete = {n: item for n, item in numbered.items() if not item.has_loads or not item.computes}
        if incomplete:
            return self._incomplete(incomplete)
        position = self.code.flow.position
        if self.exclusive:
            pairs = ", ".join(f"{one + 1} and {other + 1}" for one, other in self.exclusive)
            self.notes.append(Note(f"no path executes both of these rounds, so they have no order: {pairs}"))
        sequence = compare_rounds(position, numbered, self.exclusive, self.loop.unrolled_by)
        if sequence is None:
            return Verdict.SERIAL if is_loop else Verdict.SINGLE
        self.sequence = sequence
        return sequence.verdict

    def _exclusive(self) -> tuple[tuple[int, int], ...]:
        """Pairs of rounds that exclude each other, from the program if known, else from the stage."""
        if self.region.reference is not None:
            return self.region.reference.exclusive
        block_of = self.code.flow.block_of
        parts = [{block_of[index] for index in item.computes} for item in self.placement.rounds]
        return tuple(find_exclusive(self.code.function, self.code.flow, self.region.loop, parts))

    def _without_loop(self) -> Verdict:
        works = find_in_region(self.code, self.region, LOADS | COMPUTES)
        if not self.code.is_whole:
            self.notes.append(Note("the file is truncated and does not contain this loop"))
            return Verdict.UNKNOWN
        reference = self.region.reference
        if reference is not None and reference.is_flattened:
            self.notes.append(Note("flattened into one loop with the loop inside it"))
        if reference is not None and not reference.rounds:
            return Verdict.NO_COMPUTE if reference.other else Verdict.NO_LOADS
        if self._is_apart():
            self.notes.append(
                Note("the loop was split: its loads and computes are in different loops at this stage")
            )
            return Verdict.UNKNOWN
        if works or not (self.code.flow.loops or self.code.longest):
            return Verdict.UNROLLED
        if not self.code.longest:
            self.notes.append(
                Note("no loop at this stage was matched to this one: there are no source lines to match by")
            )
            return Verdict.UNKNOWN
        return Verdict.GONE

    def _is_apart(self) -> bool:
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
        computes = (compute for item in reference.rounds for compute in item.computes)
        chains = {self.code.visible(chain) for compute in computes for chain in compute.chains[0]}
        return any(
            flow.loop_at(index) is not None and flow.block_of[index] not in self.region.whole
            for chain in chains
            if chain is not None
            for index in self.code.computes_at.get(chain, ())
        )

    def _without_rounds(self) -> Verdict:
        if self.placement.other:
            return Verdict.NO_COMPUTE
        # Loads of other regions may be here, so for a program loop the program decides.
        has_loads = bool(find_in_region(self.code, self.region, LOADS))
        return Verdict.NO_COMPUTE if has_loads and self.region.reference is None else Verdict.NO_LOADS

    def _incomplete(self, rounds: dict[int, LocatedRound]) -> Verdict:
        by_place = self.placement.basis is Basis.SOURCE and self.code.is_whole
        computes = self.code.find(COMPUTES, self.region.whole)
        if by_place and len(rounds) == len(self.placement.rounds) and not computes:
            if not self._computes_in_another_loop():
                return Verdict.GONE
            self.notes.append(Note("its computes are in another loop"))
        for number, item in rounds.items():
            lacks = "load" if not item.has_loads else "compute"
            self.notes.append(
                Note(f"round {number + 1} ({', '.join(item.sources)}): no {lacks} found at this stage")
            )
        return Verdict.UNKNOWN

    # -- rendering ---------------------------------------------------------------------

    def _round(self, item: LocatedRound) -> RoundFacts:
        instructions = self.code.function.instructions
        loads = sorted(item.loads, key=self.code.flow.position.__getitem__)
        return RoundFacts(
            loads=len(loads),
            first_load=instructions[loads[0]].line if loads else None,
            last_load=instructions[loads[-1]].line if loads else None,
            first_compute=instructions[item.computes[0]].line if item.computes else None,
            last_compute=instructions[item.computes[-1]].line if item.computes else None,
            sources=tuple(dict.fromkeys(item.sources)),
            names=tuple(dict.fromkeys(s.statement.name for s in item.statements if s.statement.name)),
            shared=tuple(s.statement.label for s in item.statements if s.statement.shared),
            distances=tuple(self.loop.distances.get(s.statement.index, 0) for s in item.statements),
        )

    def _counts(self) -> dict[str, int]:
        """Kind → instructions of that kind directly in the region."""
        function, remains = self.code.function, self.region.remains
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
            for found in item.statements:
                name = found.statement.name or _line_of(found.statement.source)
                names.update(dict.fromkeys(found.loads, name))
        block_of, instructions = self.code.flow.block_of, self.code.function.instructions
        # The region holds its loads directly; its computes may be in a loop inside.
        own = {index for index in names if block_of[index] in self.region.scope}
        own |= {index for index in direct if block_of[index] in self.region.whole}
        events: list[_Event] = []
        for index in sorted(own, key=self.code.flow.position.__getitem__):
            kind = instructions[index].kind
            letter = "I" if kind is EventKind.INTEGER else kind.letter
            # a scalar load has no letter
            event = _Event(letter or "L", names[index]) if index in names else _Event(letter, "")
            if not events or events[-1] != event:
                events.append(event)
        return events


def _difference(number: int, one: Identity, other: Identity) -> str:
    """How the parts of a round found here differ from those found at the previous stage."""
    if one[:2] == other[:2]:
        return f"at one of the two stages, computes of round {number} are part of later instructions"
    what = "loads" if one[0] != other[0] else "computes"
    return f"the {what} found for round {number} differ from those of the previous stage"


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

"""The order verdict of a region: how its loads and computes are arranged.

docs/verdicts.md has the definitions. This module implements only these.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, groupby
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.mutual_exclusion import find_exclusive
from artifact_inspector.analysis.order.handoffs import find_handoffs
from artifact_inspector.analysis.order.loop_schedules import LoopSchedule
from artifact_inspector.analysis.order.placement import Line, LocatedRound, Placement, PreviousStage, RoundIdentity
from artifact_inspector.analysis.order.prefetch import LoopPrefetch, measure_prefetch
from artifact_inspector.analysis.order.region_facts import RegionFacts, RegionNote, RoundFacts, signature_of
from artifact_inspector.analysis.order.regions import Region, count_with_trait, find_in_region
from artifact_inspector.analysis.order.round_locator import locate_rounds
from artifact_inspector.analysis.order.round_sequence import RoundSequence, compare_rounds
from artifact_inspector.model import COMPUTES, LOADS, Basis, EventKind, OrderVerdict, RegionKind, Trait
from artifact_inspector.model.memory import Queue

_MATRIX, _MATRIX_OR_WAIT = frozenset({EventKind.MATRIX}), frozenset({EventKind.MATRIX, EventKind.WAIT})
_SIGNATURE_KINDS = frozenset(kind for kind in EventKind if kind.letter)


class _Event(NamedTuple):
    """A load or compute of a round."""

    letter: str
    name: str
    """Of the loaded value; empty for a compute."""

    def __str__(self) -> str:
        return f"{self.letter}({self.name})" if self.name else self.letter


def judge_region(
    code: FunctionCode, region: Region, previous: PreviousStage | None
) -> tuple[RegionFacts, PreviousStage]:
    """The facts of one region, and what the next stage needs to know about it.

    Args:
        previous: results of the previous stage; None at the first.
    """
    judgement = _Judgement(code, region, locate_rounds(code, region, previous), previous)
    return judgement.facts(), judgement.summary()


class _Judgement:
    """The verdict on one region, with the notes and details that go with it."""

    def __init__(
        self, code: FunctionCode, region: Region, placement: Placement, previous: PreviousStage | None
    ) -> None:
        self.code, self.region, self.placement, self.previous = code, region, placement, previous
        self.rounds = placement.rounds
        self.identities = tuple(located_round.identity for located_round in self.rounds)
        self.notes = list(placement.notes)
        self.prefetch = LoopPrefetch()
        self.sequence = RoundSequence()
        self.exclusive = self._exclusive()
        self.line = self._line()
        self.verdict = self._verdict()
        if not code.module.is_complete:
            self.verdict = self._truncated_verdict(self.verdict)
        self.order_changed = self._find_order_change()

    def facts(self) -> RegionFacts:
        code, region = self.code, self.region
        events = find_in_region(code, region, _SIGNATURE_KINDS)
        return RegionFacts(
            id=region.id,
            kind=region.kind,
            depth=region.depth,
            parent=region.parent,
            lines=self._lines(),
            signature=signature_of(code.instructions[index] for index in events),
            named_signature=" ".join(map(str, self.line)),
            verdict=self.verdict,
            distance=self._distance(),
            basis=self.placement.basis,
            pairs=self.sequence.pairs,
            exclusive=tuple((first + 1, second + 1) for first, second in self.exclusive),
            rounds=tuple(map(self._round, self.rounds)),
            unassigned=tuple(self.placement.unassigned),
            matrix=len(find_in_region(code, region, _MATRIX)),
            fused_multiply_adds=count_with_trait(code, region, EventKind.FLOAT, Trait.FUSED),
            unroll_factor=self.prefetch.unroll_factor,
            groups=self.sequence.groups,
            order_changed=self.order_changed,
            copy_position=self.prefetch.load_position if self.prefetch.ahead_statements else None,
            region_notes=tuple(dict.fromkeys(self.notes)),
            is_in_program=region.reference is not None or region.kind is not RegionKind.LOOP,
            schedule=self._schedule(),
            counts=self._counts(),
        )

    def summary(self) -> PreviousStage:
        statements = [statement for located_round in self.rounds for statement in located_round.statements]
        kinds = {
            s.program.index: frozenset(self.code.instructions[i].kind for i in (*s.loads, *s.loads_before_loop))
            for s in statements
        }
        has_order, last = self.verdict.is_order_verdict, self.previous
        return PreviousStage(
            {statement.program.index: len(statement.loads) for statement in statements},
            {number: len(located_round.computes) for number, located_round in enumerate(self.rounds)},
            {s.program.index: self.prefetch.distances.get(s.program.index, 0) for s in statements},
            self.prefetch.unroll_factor,
            verdict=self.verdict if has_order else None if last is None else last.verdict,
            identities=self.identities if has_order else None if last is None else last.identities,
            event_sequence=_shape_of(self.line) if has_order else () if last is None else last.event_sequence,
            kinds=kinds,
            rounds={i: number for number, r in enumerate(self.rounds, 1) for i in (*r.loads, *r.computes)},
        )

    def _find_order_change(self) -> bool | None:
        """Whether the order of rounds differs from the previous stage; None if unknown.

        Only the same statements are compared: the positions of other loads or computes say nothing about order. A
        change that the sequence of loads and computes does not show is not reported.
        """
        if self.previous is None or self.previous.verdict is None or not self.verdict.is_order_verdict:
            return False
        if self.previous.verdict is self.verdict:
            return False
        difference = self._work_difference(self.previous)
        if difference:
            self._note(f"unknown whether the order has changed: {difference}")
        return None if difference else True

    def _work_difference(self, previous: PreviousStage) -> str:
        """How the loads and computes of this stage differ from those of the previous one; empty if they do not."""
        if previous.identities is None or len(self.identities) != len(previous.identities):
            return "the rounds differ"
        for number, (current, earlier) in enumerate(zip(self.identities, previous.identities, strict=True), 1):
            if current is None or earlier is None:
                return f"the loads and computes of round {number} are uncertain"
            # If every load precedes every compute, it also precedes a later instruction that includes one.
            exactly = self.verdict is not OrderVerdict.CLUSTERED
            if current[:2] != earlier[:2] or (exactly and current != earlier):
                return _difference(number, current, earlier)
        is_same_sequence = previous.event_sequence == _shape_of(self.line)
        return "the sequence of loads and computes is the same" if is_same_sequence else ""

    def _note(self, message: str) -> None:
        self.notes.append(RegionNote(message))

    def _lines(self) -> tuple[int, int]:
        """First and last line of the region; the function's own line if the region is empty."""
        function, remains = self.code.function, self.region.residue
        if remains is None:
            blocks = [function.blocks[block] for block in self.region.blocks]
            ends = [end for x in blocks if x.start < x.stop for end in (x.start, x.stop - 1)]
        else:
            ends = list(remains)
        lines = [function.instructions[end].line for end in (min(ends), max(ends))] if ends else [function.line] * 2
        return lines[0], lines[1]

    def _verdict(self) -> OrderVerdict:
        schedule = self._schedule()
        if schedule is not None:
            self.notes += map(RegionNote, schedule.notes)
            if schedule.verdict is not None:
                return self._scheduled_verdict(schedule)
        if self.placement.is_uncertain:
            return OrderVerdict.UNKNOWN
        if self.region.is_specialised:
            return OrderVerdict.WARP_SPECIALISED
        if self.region.residue is not None:
            return self._dissolved_loop_verdict()
        if not self.rounds:
            # Loads of other regions may be here, so for a program loop the program decides.
            has_loads = self.region.reference is None and bool(find_in_region(self.code, self.region, LOADS))
            lacks_compute = has_loads or bool(self.placement.unassigned)
            return self._handoff() or (OrderVerdict.NO_COMPUTE if lacks_compute else OrderVerdict.NO_LOADS)
        looped = None if self.region.loop is None else self._pipelining_verdict()
        verdict = self._sequence_verdict() if looped is None else looped
        if verdict is not OrderVerdict.SERIAL:
            return verdict
        if schedule is not None:
            return OrderVerdict.OVERLAPPED if schedule.matrix_in_flight else verdict
        if self.region.is_dispatch:
            return OrderVerdict.WARP_SPECIALISED
        return OrderVerdict.UNKNOWN if self._may_overlap() else verdict

    def _handoff(self) -> OrderVerdict | None:
        """The verdict on a loop that other warps may copy or compute for; None if the program shows it."""
        if self.region.loop is None or self.region.reference is not None:
            return None
        verdict = self.code.compute_once(find_handoffs).get(self.region.loop)
        if self.region.is_dispatch and verdict is OrderVerdict.UNKNOWN:
            return OrderVerdict.WARP_SPECIALISED
        if verdict is OrderVerdict.UNKNOWN:
            self._note("other loops copy or compute for it, and only tensor-level IR shows in which order")
        return verdict

    def _may_overlap(self) -> bool:
        """True if matrix operations may be in flight at a wait for copies, and no tensor-level IR shows it."""
        if self.region.reference is not None:
            return False
        events: list[EventKind | Queue] = []
        for index in self.code.find(_MATRIX_OR_WAIT, self.region.enclosed_blocks):
            wait = self.code.language.wait(self.code.instructions[index], self.code.module)
            if wait is None:
                events.append(self.code.instructions[index].kind)
            elif wait.queue is Queue.PHASE or (wait.queue is Queue.MATRIX and wait.depth == 0):
                events.append(wait.queue)
        if (EventKind.MATRIX, Queue.PHASE) not in zip(events, [*events[1:], *events[:1]], strict=True):
            return False
        self._note("unknown whether its matrix operations complete before the next copies are waited for")
        return True

    def _schedule(self) -> LoopSchedule | None:
        """The order that the program itself gives this loop. No compiler moves copies across waits for barriers."""
        reference = self.region.reference
        return None if reference is None or self.region.loop is None else reference.schedule

    def _scheduled_verdict(self, schedule: LoopSchedule) -> OrderVerdict:
        """The verdict on a loop whose copies are followed; loads into registers may serve their own iteration."""
        verdict = schedule.verdict
        assert verdict is not None
        is_prefetch = verdict in (OrderVerdict.PIPELINED, OrderVerdict.PARTLY_PIPELINED)
        if is_prefetch and not self.code.find(LOADS, self.region.enclosed_blocks):
            self._note("none of its copies was found at this stage")
            return OrderVerdict.UNKNOWN
        if verdict is not OrderVerdict.PIPELINED or not self.rounds:
            return verdict
        self.prefetch = measure_prefetch(self.code, self.rounds, self.previous, schedule.distances)
        late = [s for s in self.prefetch.same_iteration_statements if s.program.index not in schedule.distances]
        if not late:
            return verdict
        self._note(f"loaded in the iteration that uses it: {', '.join(s.program.label for s in late)}")
        return OrderVerdict.PARTLY_PIPELINED

    def _distance(self) -> int | tuple[int, int] | None:
        schedule = self._schedule()
        if schedule is not None and schedule.verdict is not None:
            return schedule.distance
        return self.prefetch.distance if self.prefetch.ahead_statements else self.sequence.distance

    def _truncated_verdict(self, verdict: OrderVerdict) -> OrderVerdict:
        """The verdict on a truncated file: unknown if the owner of a load cannot be determined.

        Straight-line code that no earlier stage describes may contain loops that are cut off.
        """
        self._note("the file is truncated: missing parts may change the result")
        is_open = self.region.reference is None and self.region.loop is None
        if not is_open and (self.region.reference is None or None not in self.identities):
            return verdict
        self.sequence = RoundSequence()
        self.prefetch.ahead_statements.clear()
        return OrderVerdict.UNKNOWN

    def _pipelining_verdict(self) -> OrderVerdict | None:
        """Pipelined or partly pipelined; None if every load serves its own iteration."""
        schedule = self._schedule()
        scheduled = None if schedule is None else schedule.distances
        self.prefetch = prefetch = measure_prefetch(self.code, self.rounds, self.previous, scheduled)
        self.notes += prefetch.notes
        if prefetch.is_uncertain:
            prefetch.ahead_statements.clear()
            return OrderVerdict.UNKNOWN
        if not prefetch.ahead_statements:
            return None
        if not prefetch.same_iteration_statements:
            return OrderVerdict.PIPELINED
        names = ", ".join(statement.program.label for statement in prefetch.same_iteration_statements)
        self._note(f"loaded in the iteration that uses it: {names}")
        return OrderVerdict.PARTLY_PIPELINED

    def _sequence_verdict(self) -> OrderVerdict:
        is_loop = self.region.loop is not None
        numbered = {n: r for n, r in enumerate(self.rounds) if r.has_loads or not (is_loop and r.is_hoisted)}
        if not numbered:
            return OrderVerdict.NO_LOADS
        for located_round in numbered.values():
            for statement in located_round.statements if located_round.has_loads else ():
                if not (statement.loads or statement.loads_before_loop or statement.program.is_index):
                    self._note(f"no load of {statement.program.label} was found at this stage")
        incomplete = {n: r for n, r in numbered.items() if not (r.has_loads and r.computes)}
        if incomplete:
            return self._incomplete_verdict(incomplete)
        if self.exclusive:
            pairs = ", ".join(f"{first + 1} and {second + 1}" for first, second in self.exclusive)
            self._note(f"no path executes both of these rounds, so they have no order: {pairs}")
        sequence = compare_rounds(self.code.flow.position, numbered, self.exclusive, self.prefetch.unroll_factor)
        if sequence is None:
            return OrderVerdict.SERIAL if is_loop else OrderVerdict.SINGLE
        self.sequence = sequence
        return sequence.verdict

    def _exclusive(self) -> tuple[tuple[int, int], ...]:
        """Pairs of rounds that exclude each other, from the program if known, else from the stage."""
        if self.region.reference is not None:
            return self.region.reference.exclusive
        block_of = self.code.flow.block_of
        block_sets = [{block_of[index] for index in located_round.computes} for located_round in self.rounds]
        return tuple(find_exclusive(self.code, self.region.loop, block_sets))

    def _dissolved_loop_verdict(self) -> OrderVerdict:
        works = find_in_region(self.code, self.region, LOADS | COMPUTES)
        if not self.code.module.is_complete:
            self._note("the file is truncated and does not contain this loop")
            return OrderVerdict.UNKNOWN
        reference = self.region.reference
        if reference is not None and reference.is_flattened:
            self._note("flattened into one loop with the loop inside it")
        if reference is not None and not reference.rounds:
            return OrderVerdict.NO_COMPUTE if reference.unassigned_loads else OrderVerdict.NO_LOADS
        if self._is_split():
            self._note("the loop was split: its loads and computes are in different loops at this stage")
            return OrderVerdict.UNKNOWN
        if works or not (self.code.flow.loops or self.code.max_chain_length):
            return OrderVerdict.UNROLLED
        if not self.code.max_chain_length:
            self._note("no loop at this stage was matched to this one: there are no source lines to match by")
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

    def _incomplete_verdict(self, rounds: dict[int, LocatedRound]) -> OrderVerdict:
        by_place = self.placement.basis is Basis.SOURCE and self.code.module.is_complete
        computes = self.code.find(COMPUTES, self.region.enclosed_blocks)
        if by_place and len(rounds) == len(self.rounds) and not computes:
            if not self._computes_in_another_loop():
                return OrderVerdict.GONE
            self._note("its computes are in another loop")
        for number, located_round in rounds.items():
            lacks = "load" if not located_round.has_loads else "compute"
            sources = ", ".join(located_round.sources)
            self._note(f"round {number + 1} ({sources}): no {lacks} found at this stage")
        return OrderVerdict.UNKNOWN

    def _round(self, located_round: LocatedRound) -> RoundFacts:
        instructions, computes = self.code.instructions, located_round.computes
        loads = sorted(located_round.loads, key=self.code.flow.position.__getitem__)
        return RoundFacts(
            loads=len(loads),
            first_load=instructions[loads[0]].line if loads else None,
            last_load=instructions[loads[-1]].line if loads else None,
            first_compute=instructions[computes[0]].line if computes else None,
            last_compute=instructions[computes[-1]].line if computes else None,
            sources=tuple(dict.fromkeys(located_round.sources)),
            names=tuple(dict.fromkeys(s.program.name for s in located_round.statements if s.program.name)),
            shared=tuple(s.program.label for s in located_round.statements if s.program.is_shared),
            distances=tuple(self.prefetch.distances.get(s.program.index, 0) for s in located_round.statements),
        )

    def _counts(self) -> dict[str, int]:
        """Kind → instructions of that kind directly in the region."""
        kinds, residue = self.code.kinds, self.region.residue
        if residue is None:
            blocks = [self.code.blocks[block] for block in self.region.blocks & self.code.rank.keys()]
            counts = Counter(chain.from_iterable(kinds[block.start : block.stop] for block in blocks))
        else:
            counts = Counter(map(kinds.__getitem__, residue))
        return {kind.count_name: counts[kind] for kind in EventKind if counts[kind]}

    def _line(self) -> tuple[_Event, ...]:
        """The loads and computes of the rounds in execution order, each run of equal events once."""
        names: dict[int, str] = {}
        for statement in (statement for located_round in self.rounds for statement in located_round.statements):
            source = statement.program.source
            name = statement.program.name or ("?" if source is None else str(source.number))
            names.update(dict.fromkeys(statement.loads, name))
        block_of, region = self.code.flow.block_of, self.region
        # The region holds its loads directly; its computes may be in a loop inside.
        own_events = {index for index in names if block_of[index] in region.scope}
        own_events |= {i for r in self.rounds for i in r.computes if block_of[i] in region.enclosed_blocks}
        events = []
        for index in sorted(own_events, key=self.code.flow.position.__getitem__):
            kind = self.code.instructions[index].kind
            letter = "I" if kind is EventKind.INTEGER else kind.letter
            # a scalar load has no letter
            events.append(_Event(letter or "L", names[index]) if index in names else _Event(letter, ""))
        return tuple(event for event, _ in groupby(events))


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

"""The order verdict of a region: how its loads and computes are laid out.

The definitions are those of docs/verdicts.md; this module holds nothing but them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.order.locate import locate
from artifact_inspector.analysis.order.placement import LocatedRound, LocatedStatement, Memory, Placement
from artifact_inspector.analysis.order.reference import LoadStatement
from artifact_inspector.analysis.order.regions import Region, count_with_trait, find_in_region
from artifact_inspector.model import COMPUTES, LOADS, EventKind, Instruction, Trait

__all__ = ["ORDER_VERDICTS", "Pair", "PlacedRound", "RegionFacts", "RoundFacts", "judge", "signature_of"]

_MATRIX = frozenset({EventKind.MATRIX})
_TOLD = frozenset(kind for kind in EventKind if kind.letter)
ORDER_VERDICTS = frozenset({"interleaved", "clustered", "grouped", "mixed"})
"""Verdicts that speak of the order of rounds; only a change between two of these is a change of order."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring rounds (r, r+1)."""

    f: float
    """Share of round r+1's load statements issued before round r's first direct compute."""
    g: float
    """Share issued after round r's last direct compute."""

    @property
    def letter(self) -> str:
        """I (interleaved), C (clustered) or M (mixed)."""
        if self.g == 1.0:
            return "I"
        return "C" if self.f == 1.0 else "M"


@dataclass(frozen=True, slots=True)
class PlacedRound:
    """Where one round stands at one stage; lines are those of the stage's file."""

    loads: int
    """Load instructions."""
    first_load: int | None
    last_load: int | None
    first_compute: int | None
    last_compute: int | None


@dataclass(frozen=True, slots=True)
class RoundFacts(PlacedRound):
    """Loads that belong together, and the computes on them."""

    sources: tuple[str, ...]
    """Lines of its load statements in the user's code, `file.py:line`."""
    names: tuple[str, ...]
    """What the IR calls the loaded values."""
    shared: tuple[str, ...]
    """Those of its statements whose data later rounds use too."""
    distances: tuple[int, ...]
    """Iterations ahead, of each statement."""

    @property
    def placed(self) -> PlacedRound:
        """Its place alone."""
        return PlacedRound(self.loads, self.first_load, self.last_load, self.first_compute, self.last_compute)


@dataclass(frozen=True, slots=True)
class RegionFacts:
    """A region at one stage: a loop, a partition or the straight-line code."""

    id: str
    """`loop@98`, `straight`, `partition0` …: the same at every stage."""
    kind: str
    depth: int
    """Loops around it, itself included."""
    parent: str | None
    lines: tuple[int, int]
    signature: str
    """Its events in text order, as letters with their number: `W1 B1 s8 M16`."""
    readable: str
    """The signature with the names of what is loaded, where the IR tells."""
    verdict: str
    distance: int | tuple[int, int] | None
    """Source iterations that the loads run ahead; a range where they differ."""
    basis: str
    """By what its rounds were found: source places, else the flow of data."""
    pairs: tuple[Pair, ...]
    rounds: tuple[RoundFacts, ...]
    other: tuple[str, ...]
    """Places of loads and computes that belong to no round."""
    matrix: int
    """Matrix instructions."""
    fused: int
    """Fused multiply-adds: what a dot becomes where no matrix operation does it."""
    unrolled_by: int
    groups: str
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""
    copies_stand: str | None
    """In a pipelined loop: copies stand `before`, `after` or `between` the direct computes."""
    notes: tuple[str, ...]
    in_program: bool
    """False for a loop that only the compiler made."""

    @property
    def phrase(self) -> str:
        """The verdict as it is printed, with its distance, groups or shares."""
        text = self.verdict
        if self.distance is not None:
            low, high = self.distance if isinstance(self.distance, tuple) else (self.distance, self.distance)
            text += f"({low})" if low == high else f"({low}–{high})"
        if self.groups:
            text += f" {self.groups}"
        if self.verdict == "mixed":
            worst = next(pair for pair in self.pairs if pair.letter == "M")
            text += f" (f={worst.f:.2g} g={worst.g:.2g})"
        return text + (f" ×{self.unrolled_by}" if self.unrolled_by > 1 else "")


def signature_of(instructions: list[Instruction]) -> str:
    """Run-length string of event letters, e.g. `W1 B1 s8 M16`."""
    letters = filter(None, [instruction.kind.letter for instruction in instructions])
    return " ".join(f"{letter}{len(list(run))}" for letter, run in groupby(letters))


def judge(code: Code, region: Region, before: Memory | None, *, exact: bool) -> tuple[RegionFacts, Memory]:
    """The facts of one region, and what to remember of it for the next stage.

    Args:
        before: what the stage before left, None at the first.
        exact: the stage is the one that the reference was read from.
    """
    placement = locate(code, region, before, exact=exact)
    judgement = _Judgement(code, region, placement, before)
    return judgement.facts(), judgement.memory()


class _Judgement:
    def __init__(self, code: Code, region: Region, placement: Placement, before: Memory | None) -> None:
        self.before = before
        self.code = code
        self.region = region
        self.placement = placement
        self.position = code.flow.position
        self.notes = list(placement.notes)
        self.groups = ""
        self.distance: int | tuple[int, int] | None = None
        self.pairs: tuple[Pair, ...] = ()
        self.unrolled_by = 1
        self.copies_stand: str | None = None
        self.distances: dict[int, int] = {}
        self.uncertain = False

    def facts(self) -> RegionFacts:
        verdict = self._verdict()
        code, region, reference = self.code, self.region, self.region.reference
        instructions = code.function.instructions
        return RegionFacts(
            id=region.id,
            kind=region.kind,
            depth=region.depth,
            parent=region.parent,
            lines=self._lines(),
            signature=signature_of([instructions[i] for i in find_in_region(code, region, _TOLD)]),
            readable=self._readable(),
            verdict=verdict,
            distance=self.distance,
            basis=self.placement.basis,
            pairs=self.pairs,
            rounds=tuple(self._round(item) for item in self.placement.rounds),
            other=tuple(self.placement.other),
            matrix=len(find_in_region(code, region, _MATRIX)),
            fused=count_with_trait(code, region, EventKind.FLOAT, Trait.FUSED),
            unrolled_by=self.unrolled_by,
            groups=self.groups,
            copies_stand=self.copies_stand,
            notes=tuple(dict.fromkeys(self.notes)),
            in_program=reference is not None or region.kind != "loop",
        )

    def memory(self) -> Memory:
        statements = [found for item in self.placement.rounds for found in item.statements]
        return Memory(
            {found.statement.index: len(found.loads) for found in statements},
            {number: len(item.computes) for number, item in enumerate(self.placement.rounds)},
            {found.statement.index: self.distances.get(id(found), 0) for found in statements},
            self.unrolled_by,
        )

    def _lines(self) -> tuple[int, int]:
        """First and last line of the region, the function's own where nothing stands in it."""
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

    def _verdict(self) -> str:
        rounds = self.placement.rounds
        if self.placement.uncertain:
            return "unknown"
        if self.region.computes_elsewhere:
            return "warp-specialised"
        if self.region.remains is not None:
            return self._without_loop()
        if not rounds:
            return self._without_rounds()
        if self.region.loop is not None:
            looped = self._loop_verdict(rounds)
            if looped is not None:
                return looped
        rounds = [item for item in rounds if item.loads or not self._is_hoisted(item)]
        if not rounds:
            return "no-loads"
        for item in rounds:
            for found in item.statements:
                if item.loads and not found.loads and not found.front and not found.statement.is_index:
                    self.notes.append(f"no load of {self._name(found.statement)} was found at this stage")
        incomplete = [item for item in rounds if not item.loads or not item.computes]
        if incomplete:
            return self._incomplete(incomplete)
        if len(rounds) == 1:
            return "single" if self.region.loop is None else "serial"
        return self._compare(rounds)

    def _without_loop(self) -> str:
        works = find_in_region(self.code, self.region, LOADS | COMPUTES)
        if not self.code.is_whole:
            self.notes.append("the file is cut off, and no loop in what is there is this one")
            return "unknown"
        if self._is_apart():
            self.notes.append(
                "no loop here is this one alone: its loads stand in one, its computes in another"
            )
            return "unknown"
        if works or not (self.code.flow.loops or self.code.longest):
            return "unrolled"
        if not self.code.longest:
            self.notes.append(
                "no loop here was matched to this one, and there are no lines to look for it by"
            )
            return "unknown"
        return "gone"

    def _is_apart(self) -> bool:
        """True where what is left of a loop stands in loops of which none encloses another."""
        flow = self.code.flow
        loads = {flow.loop_at(i) for i in find_in_region(self.code, self.region, LOADS)}
        computes = {flow.loop_at(i) for i in find_in_region(self.code, self.region, COMPUTES)}
        return bool(loads and computes) and all(
            a is not None and b is not None and flow.loops[a].blocks.isdisjoint(flow.loops[b].blocks)
            for a in loads
            for b in computes
        )

    def _computes_in_another_loop(self) -> bool:
        """True where computes of this loop stand in a loop that is not inside it."""
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

    def _without_rounds(self) -> str:
        if self.placement.other:
            return "no-compute"
        # Loads of other regions may stand here: what a loop of the program loads, the program says.
        has_loads = bool(find_in_region(self.code, self.region, LOADS))
        return "no-compute" if has_loads and self.region.reference is None else "no-loads"

    def _incomplete(self, rounds: list[LocatedRound]) -> str:
        by_place = self.placement.basis == "source" and self.code.is_whole
        if by_place and len(rounds) == len(self.placement.rounds) and not self._computes():
            if not self._computes_in_another_loop():
                return "gone"
            self.notes.append("its computes stand in another loop")
        for item in rounds:
            number = self.placement.rounds.index(item) + 1
            lacks = "load" if not item.loads else "compute"
            self.notes.append(
                f"round {number} ({', '.join(self._sources(item))}): no {lacks} found at this stage"
            )
        return "unknown"

    def _computes(self) -> list[int]:
        """Computes of the region and of what it encloses."""
        return self.code.find(COMPUTES, self.region.whole)

    def _compare(self, rounds: list[LocatedRound]) -> str:
        rounds = [self._one_copy(item) for item in rounds]
        pairs = [self._pair(a, b) for a, b in pairwise(rounds)]
        self.pairs = tuple(pairs)
        letters = {pair.letter for pair in pairs}
        if letters == {"I"}:
            return "interleaved"
        if letters == {"C"}:
            return "clustered"
        if "M" in letters:
            return "mixed"
        text = "{1"
        for number, pair in enumerate(pairs, 2):
            text += f" {number}" if pair.letter == "C" else f"}}{{{number}"
        self.groups = text + "}"
        return "grouped"

    def _one_copy(self, item: LocatedRound) -> LocatedRound:
        """The first of the equal copies of an unrolled body."""
        times = self.unrolled_by
        if times == 1:
            return item
        statements = [
            LocatedStatement(s.statement, s.loads[: max(1, len(s.loads) // times)])
            for s in item.statements
            if s.loads
        ]
        return LocatedRound(statements, item.computes[: max(1, len(item.computes) // times)])

    def _pair(self, earlier: LocatedRound, later: LocatedRound) -> Pair:
        first = min(self.position[i] for i in earlier.computes)
        last = max(self.position[i] for i in earlier.computes)
        before = after = 0.0
        statements = [s for s in later.statements if s.loads]
        for statement in statements:
            places = [self.position[i] for i in statement.loads]
            before += sum(place < first for place in places) / len(places)
            after += sum(place > last for place in places) / len(places)
        return Pair(before / len(statements), after / len(statements))

    # -- loops ------------------------------------------------------------------------

    def _loop_verdict(self, rounds: list[LocatedRound]) -> str | None:
        """Pipelined, partly pipelined or None when every load serves its own iteration."""
        self.unrolled_by = self._unrolling(rounds)
        ahead: list[LocatedStatement] = []
        same: list[LocatedStatement] = []
        distances: list[int] = []
        consumed = [self._consumed_in_front(item) for item in rounds]
        for item, own in zip(rounds, consumed, strict=True):
            for found in item.statements:
                if not found.loads:
                    if found.front:
                        self.notes.append(
                            f"the load of {self._name(found.statement)} was hoisted out of the loop"
                        )
                    continue
                distance = self._distance(found, own, max(consumed))
                self.distances[id(found)] = distance
                if found.statement.is_index:
                    continue
                (ahead if distance > 0 else same).append(found)
                if distance > 0:
                    distances.append(distance)
        if self.uncertain:
            return "unknown"
        if not ahead:
            return None
        low, high = min(distances), max(distances)
        self.distance = low if low == high else (low, high)
        self.copies_stand = self._copies_place(rounds)
        if not same:
            return "pipelined"
        names = ", ".join(self._name(found.statement) for found in same)
        self.notes.append(f"loaded in the iteration that uses it: {names}")
        return "partly pipelined"

    def _distance(self, found: LocatedStatement, own: int, most: int) -> int:
        """Iterations ahead, given what its own round and any round consumes in front of the loop.

        A back end that peels an iteration may blur the computes of one round; then the distance that
        the stage before knew tells that a peeled iteration takes one off for every load.
        """
        known = 0 if self.before is None else self.before.distances.get(found.statement.index, 0)
        if known > found.statement.distance and not found.front:
            self.notes.append(
                f"the copies of {self._name(found.statement)} in front of the loop have lost their line; "
                "its distance is that of the stage before"
            )
            return known
        copies = self._copies_in_front(found)
        distance, peeled = (found.statement.distance + max(0, copies - n) for n in (own, most))
        return peeled if known and distance != known == peeled else distance

    def _copies_in_front(self, found: LocatedStatement) -> int:
        each = len(found.loads) / self.unrolled_by
        copies = len(found.front) / each
        if copies == int(copies):
            return int(copies)
        known = None if self.before is None else self.before.distances.get(found.statement.index)
        self.notes.append(
            f"{len(found.front)} loads of {self._name(found.statement)} in front of the loop, "
            f"{len(found.loads)} inside: not a whole number of iterations; "
            + ("its distance is unknown" if known is None else "its distance is that of the stage before")
        )
        if known is None:
            self.uncertain = True
            return round(copies)
        return known - found.statement.distance

    def _consumed_in_front(self, item: LocatedRound) -> int:
        if not item.computes or not item.front_computes:
            return 0
        return round(len(item.front_computes) / (len(item.computes) / self.unrolled_by))

    def _copies_place(self, rounds: list[LocatedRound]) -> str | None:
        """Where the loads that run ahead stand; what an iteration loads for itself is in front anyway."""
        statements = [found for item in rounds for found in item.statements]
        ahead = [found for found in statements if self.distances.get(id(found), 0) > 0]
        loads = [self.position[i] for found in ahead for i in found.loads]
        computes = [self.position[i] for item in rounds for i in item.computes]
        if not loads or not computes:
            return None
        if max(loads) < min(computes):
            return "before"
        return "after" if min(loads) > max(computes) else "between"

    def _unrolling(self, rounds: list[LocatedRound]) -> int:
        """How many equal copies of the program's body the loop holds.

        LLVM unrolls after the rounds were read: the events, told apart by round, repeat as a whole.
        """
        if self.before is not None:
            # A back end that mixes copies, or the loads and computes of one, leaves the number of loads.
            present = [s for item in rounds for s in item.statements if s.loads]
            if all(len(s.loads) == self.before.loads.get(s.statement.index) for s in present):
                return self.before.unrolled_by
        labels: dict[int, str] = {}
        for number, item in enumerate(rounds):
            for place, found in enumerate(item.statements):
                labels.update(dict.fromkeys(found.loads, f"L{number}.{place}"))
            labels.update(dict.fromkeys(item.computes, f"C{number}"))
        runs: list[str] = []
        for index in sorted(labels, key=lambda i: self.position[i]):
            if not runs or runs[-1] != labels[index]:
                runs.append(labels[index])
        statements = sum(bool(found.loads) for item in rounds for found in item.statements)
        for period in range(max(2, statements), len(runs) // 2 + 1):
            if len(runs) % period == 0 and runs == runs[:period] * (len(runs) // period):
                return len(runs) // period
        return 1

    def _is_hoisted(self, item: LocatedRound) -> bool:
        return self.region.loop is not None and any(found.front for found in item.statements)

    # -- words -------------------------------------------------------------------------

    def _round(self, item: LocatedRound) -> RoundFacts:
        line = self._line
        loads = sorted(item.loads, key=lambda i: self.position[i])
        return RoundFacts(
            loads=len(loads),
            first_load=line(loads[0]) if loads else None,
            last_load=line(loads[-1]) if loads else None,
            first_compute=line(item.computes[0]) if item.computes else None,
            last_compute=line(item.computes[-1]) if item.computes else None,
            sources=tuple(dict.fromkeys(self._sources(item))),
            names=tuple(dict.fromkeys(s.statement.name for s in item.statements if s.statement.name)),
            shared=tuple(self._name(s.statement) for s in item.statements if s.statement.shared),
            distances=tuple(self.distances.get(id(s), 0) for s in item.statements),
        )

    def _line(self, index: int) -> int:
        return self.code.function.instructions[index].line

    def _sources(self, item: LocatedRound) -> list[str]:
        return [s.statement.source for s in item.statements if s.statement.source is not None]

    def _name(self, statement: LoadStatement) -> str:
        if statement.source is None:
            return statement.name or "a load"
        return f"{statement.name} ({statement.source})" if statement.name else statement.source

    def _readable(self) -> str:
        names: dict[int, str] = {}
        direct: set[int] = set()
        for item in self.placement.rounds:
            direct.update(item.computes)
            for found in item.statements:
                name = found.statement.name or (found.statement.source or "?").rpartition(":")[2]
                names.update(dict.fromkeys(found.loads, name))
        block_of, instructions = self.code.flow.block_of, self.code.function.instructions
        own = [index for index in names.keys() | direct if block_of[index] in self.region.blocks]
        words: list[str] = []
        for index in sorted(own, key=self.position.__getitem__):
            letter = instructions[index].kind.letter
            word = f"{letter}({names[index]})" if index in names else letter
            if not words or words[-1] != word:
                words.append(word)
        return " ".join(words)

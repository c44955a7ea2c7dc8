"""Where the direct computes of a region's rounds stand at a stage.

By place first. What several operations of the program share a place of is told apart by dataflow, else it
is split in program order; a compute without an instruction of its own stands in its nearest consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain
from artifact_inspector.analysis.order.facts import Note
from artifact_inspector.analysis.order.lineless import find_computes_taking
from artifact_inspector.analysis.order.placement import LocatedRound, Memory
from artifact_inspector.analysis.order.reference import ReferenceRegion, ReferenceRound, equal_runs
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.order.rounds import bits_of
from artifact_inspector.model import EventKind

_ATOMICS = frozenset({EventKind.ATOMIC})
_INTEGERS = frozenset({EventKind.INTEGER})
LOST = -1
"""Level of a round none of whose computes, or of their consumers, stands at its place."""


class ComputeLocator:
    """Finds the computes of one region, after its loads."""

    def __init__(self, code: Code, region: Region, reference: ReferenceRegion, before: Memory | None) -> None:
        self._code, self._region, self._reference, self._before = code, region, reference, before
        self._integer_places = {
            code.visible(chain)
            for item in reference.rounds
            for compute in item.computes
            if compute.is_integer
            for level in compute.chains
            for chain in level
        }
        self._slots = reference.peers.seen(code)
        self._ours = frozenset[int]().union(*(_steps(item) for item in reference.rounds))
        """Computes of the program that are of a round, or follow one on the way to its anchor."""
        self._guessed: set[int] = set()
        """Rounds whose computes were told from others of their line by their place in a row alone."""
        self._at: dict[Chain, list[int]] = {}
        """Computes of the region at a place, as far as they were asked for."""
        self._taking: list[list[int]] | None = None
        self.notes: list[Note] = []

    def run(self, located: list[LocatedRound]) -> None:
        """Fill in the computes of some rounds, whose loads are found."""
        levels = [self._level(reference) for reference in self._reference.rounds]
        owners: dict[Chain, list[int]] = {}
        for number, level in enumerate(levels):
            for chain in self._chains(number, level, level + 1):
                owners.setdefault(chain, []).append(number)
        for chain, rounds in owners.items():
            self._share(chain, rounds, levels, located)
        for number, item in enumerate(located):
            self._complete(number, item, levels[number], located)
            item.computes = sorted(set(item.computes), key=self._code.flow.position.__getitem__)
            item.found = self._found(number, item)
        self._take_tallies([item for item in located if item.has_loads and not item.computes])

    # -- by place --------------------------------------------------------------------

    def _level(self, reference: ReferenceRound) -> int:
        """0 when a direct compute stands at its own place, n when the n-th consumer must stand in."""
        deepest = max((len(compute.chains) for compute in reference.computes), default=0)
        for level in range(deepest):
            for compute in reference.computes:
                if level < len(compute.chains) and any(
                    self._computes_at(self._code.visible(chain)) for chain in compute.chains[level]
                ):
                    return level
        return LOST

    def _chains(self, number: int, first: int, stop: int | None) -> list[Chain]:
        """Places that hold a round's computes, or their consumers `first` to `stop` steps away."""
        if first < 0:
            return []
        found: dict[Chain, None] = {}
        for compute in self._reference.rounds[number].computes:
            levels = compute.chains[min(first, len(compute.chains) - 1) : stop]
            for chain in (self._code.visible(chain) for level in levels for chain in level):
                if chain is not None and self._computes_at(chain):
                    found[chain] = None
        return list(found)

    def _computes_at(self, chain: Chain | None) -> list[int]:
        if chain is None:
            return []
        if chain not in self._at:
            block_of, whole = self._code.flow.block_of, self._region.whole
            self._at[chain] = [index for index in self._table(chain) if block_of[index] in whole]
        return self._at[chain]

    def _table(self, chain: Chain) -> list[int]:
        found = self._code.computes_at.get(chain, [])
        return found or self._code.integers_at.get(chain, []) if chain in self._integer_places else found

    def _share(self, chain: Chain, owning: list[int], levels: list[int], located: list[LocatedRound]) -> None:
        """Give the computes at one place to the rounds that have some there."""
        instructions = self._code.function.instructions
        everywhere = self._region.in_front(self._code, self._table(chain))
        for indices, slots, rounds in self._by_kind(chain, owning, levels):
            kinds = {instructions[index].kind for index in indices}
            front = [index for index in everywhere if instructions[index].kind in kinds]
            owned = [self._owned(number, levels[number], slots) for number in rounds]
            if all(owned) and not self._ours.issuperset(slots):
                shares = self._by_slot(indices, rounds, owned, len(slots), located)
            else:
                shares = [indices] if len(rounds) == 1 else self._apart(indices, rounds, located)
            for number, share in zip(rounds, shares, strict=True):
                located[number].computes += share
                # Rounds of one line (an unrolled loop of the program) peel as many as they keep inside.
                peeled = round(len(front) * len(share) / len(indices))
                located[number].front_computes += front[:peeled]

    def _by_kind(
        self, chain: Chain, owning: list[int], levels: list[int]
    ) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """The computes at a place, those of the program there, and the rounds that have some of these.

        Where both hold matrix operations and others (`acc += dot(a, b) * scale` is one line), apart: a matrix
        operation is never what became of a multiplication.
        """
        peers, instructions = self._reference.peers, self._code.function.instructions
        indices, slots = self._computes_at(chain), self._slots_at(chain)
        found = [
            (
                [i for i in indices if (instructions[i].kind is EventKind.MATRIX) is wanted],
                [slot for slot in slots if peers.is_matrix(slot) is wanted],
            )
            for wanted in (True, False)
        ]
        if not all(here and there for here, there in found):
            yield indices, slots, owning
            return
        for here, there in found:
            rounds = [number for number in owning if self._owned(number, levels[number], there)]
            if rounds:
                yield here, there, rounds

    def _slots_at(self, chain: Chain) -> list[int]:
        """The computes of the program at a place that stand in this region, in program order."""
        loop, peers = self._reference.loop, self._reference.peers
        return [index for index in self._slots.get(chain, ()) if peers.is_inside(index, loop)]

    def _owned(self, number: int, level: int, slots: list[int]) -> list[int]:
        """Which of the computes at a place, by their number there, are of a round."""
        steps = set[int]()
        for compute in self._reference.rounds[number].computes:
            steps |= compute.steps[min(level, len(compute.steps) - 1)]
        return [place for place, index in enumerate(slots) if index in steps]

    def _by_slot(
        self,
        indices: list[int],
        rounds: list[int],
        owned: list[list[int]],
        count: int,
        located: list[LocatedRound],
    ) -> list[list[int]]:
        """Shares where operations stand at a place that are of no round (later copies of a round's line)."""
        runs = equal_runs(indices, count)
        if self._code.language.access is None or len(indices) % count:
            self._guessed.update(rounds)
        taking = self._find_taking(located)
        shares = []
        for number, places in zip(rounds, owned, strict=True):
            share = [index for place in places for index in runs[place]]
            confirmed = set(share).intersection(taking[number])
            shares.append([index for index in share if index in confirmed] or share)
        return shares

    def _apart(self, indices: list[int], rounds: list[int], located: list[LocatedRound]) -> list[list[int]]:
        """Tell the computes at one place apart: by the loads they take, else in equal runs."""
        here, taking = set(indices), self._find_taking(located)
        shares = [[i for i in taking[number] if i in here] for number in rounds]
        return shares if all(shares) else equal_runs(indices, len(rounds))

    # -- by dataflow -----------------------------------------------------------------

    def _find_taking(self, located: list[LocatedRound]) -> list[list[int]]:
        """For each round, the computes that take its data first, by dataflow; found once."""
        if self._taking is None:
            taking = find_computes_taking(self._code, self._region, [item.loads for item in located])
            self._taking = [[] for _ in located]
            for index, bits in taking.items():
                for number in bits_of(bits):
                    self._taking[number].append(index)
        return self._taking

    def _find_counting(self, number: int, item: LocatedRound) -> list[int]:
        """Of a round that only counts, the integer operations that take its data.

        A back end makes one of several, at the line of any.
        """
        if not all(compute.is_integer for compute in self._reference.rounds[number].computes):
            return []
        return list(find_computes_taking(self._code, self._region, [item.loads], _INTEGERS))

    def _complete(self, number: int, item: LocatedRound, level: int, located: list[LocatedRound]) -> None:
        """Add computes that were contracted into a consumer, or that bear another operation's line."""
        if not item.has_loads:
            return
        if level == LOST:
            item.computes = self._find_taking(located)[number] or self._find_counting(number, item)
            if item.computes:
                self.notes.append(Note("computes found by dataflow, none stands at its line", number + 1))
            return
        contracted = level > 0
        known = 0 if self._before is None else self._before.computes.get(number, 0)
        if level == 0 and (len(item.computes) >= known or len(located) == 1):
            return
        places = self._chains(number, 0, None)
        candidates = {index for chain in places for index in self._of_round(number, chain)}
        taking = [index for index in self._find_taking(located)[number] if index in candidates]
        if level == 0:
            contracted = bool(set(taking) - set(item.computes))
            item.computes += taking
        elif taking:
            item.computes = taking
        if contracted:
            item.contracted = True
            self.notes.append(Note("computes were contracted into their consumers", number + 1))

    def _of_round(self, number: int, chain: Chain) -> list[int]:
        """The computes at a place that may be of a round, or follow one of its on the way to its anchor."""
        indices, slots = self._computes_at(chain), self._slots_at(chain)
        steps = _steps(self._reference.rounds[number])
        if self._ours.issuperset(slots) or steps.isdisjoint(slots):
            return indices
        self._guessed.add(number)
        runs = equal_runs(indices, len(slots))
        return [index for place, slot in enumerate(slots) if slot in steps for index in runs[place]]

    def _found(self, number: int, item: LocatedRound) -> frozenset[int] | None:
        """The direct computes of the program that stand here, at their own place or in a consumer."""
        if number in self._guessed:
            return None
        known, chain_of = self._code.chains, self._code.chain
        places = {known[index] if index in known else chain_of(index) for index in item.computes}
        return frozenset(
            compute.index
            for compute in self._reference.rounds[number].computes
            if any(self._code.visible(chain) in places for level in compute.chains for chain in level)
        )

    # -- histograms ------------------------------------------------------------------

    def _take_tallies(self, lacking: list[LocatedRound]) -> None:
        """Give rounds without a compute the atomics in shared memory that Triton makes of a histogram.

        Source: Triton, HistogramOpToLLVM.cpp. A program's own atomics go to global memory.
        """
        tallies = list(self._tallies()) if lacking else []
        if not tallies:
            return
        for item, share in zip(lacking, equal_runs(tallies, len(lacking)), strict=True):
            item.computes = share
        self.notes.append(
            Note("a histogram is made by atomics in shared memory: they are taken for its computes")
        )

    def _tallies(self) -> Iterable[int]:
        instructions, in_shared = self._code.function.instructions, self._code.language.in_shared
        for index in self._code.find(_ATOMICS, self._region.whole):
            if in_shared(instructions[index]):
                yield index


def _steps(item: ReferenceRound) -> frozenset[int]:
    return frozenset(index for compute in item.computes for step in compute.steps for index in step)

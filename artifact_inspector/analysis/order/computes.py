"""Locates the direct computes of a region's rounds at a stage.

Source locations are compared first. Operations of the program that share a location are distinguished by
dataflow, or else split in program order. A compute without an instruction of its own is located at its
nearest consumer.
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
"""Level of a round if neither its computes nor their consumers have an instruction at their locations."""


class ComputeLocator:
    """Finds the computes of one region, after its loads have been located."""

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
        """Computes of the program that belong to a round, or follow one on the path to its anchor."""
        self._guessed: set[int] = set()
        """Rounds whose computes were distinguished from others on their line only by their position in a
        sequence.
        """
        self._at: dict[Chain, list[int]] = {}
        """Cache: source location → computes of the region there."""
        self._taking: list[list[int]] | None = None
        self.notes: list[Note] = []

    def run(self, located: list[LocatedRound]) -> None:
        """Fill in the computes of rounds whose loads have been located."""
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

    # -- by source location ----------------------------------------------------------

    def _level(self, reference: ReferenceRound) -> int:
        """0 if a direct compute has an instruction at its own location, n if its n-th consumer does."""
        deepest = max((len(compute.chains) for compute in reference.computes), default=0)
        for level in range(deepest):
            for compute in reference.computes:
                if level < len(compute.chains) and any(
                    self._computes_at(self._code.visible(chain)) for chain in compute.chains[level]
                ):
                    return level
        return LOST

    def _chains(self, number: int, first: int, stop: int | None) -> list[Chain]:
        """Locations that hold a round's computes, or their consumers `first` to `stop` steps away."""
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
        """Distribute the computes at one location over the rounds that have computes there."""
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
                # Rounds on one line (an unrolled loop of the program) peel in proportion to what they
                # keep inside.
                peeled = round(len(front) * len(share) / len(indices))
                located[number].front_computes += front[:peeled]

    def _by_kind(
        self, chain: Chain, owning: list[int], levels: list[int]
    ) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """The computes at a location, the program's computes there, and the rounds that own some.

        If both hold matrix operations and others (`acc += dot(a, b) * scale` on one line), they are
        yielded separately: a multiplication never becomes a matrix operation.
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
        """The program's computes at a location that are in this region, in program order."""
        loop, peers = self._reference.loop, self._reference.peers
        return [index for index in self._slots.get(chain, ()) if peers.is_inside(index, loop)]

    def _owned(self, number: int, level: int, slots: list[int]) -> list[int]:
        """Indices into `slots` of the computes that belong to a round."""
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
        """Shares at a location that also has operations of no round (later copies of a round's line)."""
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
        """Split the computes at one location by the loads whose data they use, or else into equal runs."""
        here, taking = set(indices), self._find_taking(located)
        shares = [[i for i in taking[number] if i in here] for number in rounds]
        return shares if all(shares) else equal_runs(indices, len(rounds))

    # -- by dataflow -----------------------------------------------------------------

    def _find_taking(self, located: list[LocatedRound]) -> list[list[int]]:
        """For each round, the computes that are the first to use its data, by dataflow. Computed once."""
        if self._taking is None:
            taking = find_computes_taking(self._code, self._region, [item.loads for item in located])
            self._taking = [[] for _ in located]
            for index, bits in taking.items():
                for number in bits_of(bits):
                    self._taking[number].append(index)
        return self._taking

    def _find_counting(self, number: int, item: LocatedRound) -> list[int]:
        """The integer operations that use the data of a round whose computes are all integer operations.

        A back end may merge several into one, at the line of any of them.
        """
        if not all(compute.is_integer for compute in self._reference.rounds[number].computes):
            return []
        return list(find_computes_taking(self._code, self._region, [item.loads], _INTEGERS))

    def _complete(self, number: int, item: LocatedRound, level: int, located: list[LocatedRound]) -> None:
        """Add computes that were contracted into a consumer, or that carry another operation's line."""
        if not item.has_loads:
            return
        if level == LOST:
            item.computes = self._find_taking(located)[number] or self._find_counting(number, item)
            if item.computes:
                self.notes.append(Note("computes located by dataflow: none is at its line", number + 1))
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
        """The computes at a location that may belong to a round, or are on the path to its anchor."""
        indices, slots = self._computes_at(chain), self._slots_at(chain)
        steps = _steps(self._reference.rounds[number])
        if self._ours.issuperset(slots) or steps.isdisjoint(slots):
            return indices
        self._guessed.add(number)
        runs = equal_runs(indices, len(slots))
        return [index for place, slot in enumerate(slots) if slot in steps for index in runs[place]]

    def _found(self, number: int, item: LocatedRound) -> frozenset[int] | None:
        """The program's direct computes that are located here, themselves or in a consumer."""
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
        """Use the shared-memory atomics of a histogram as computes of the rounds without any.

        Source: Triton, HistogramOpToLLVM.cpp. A program's own atomics go to global memory.
        """
        tallies = list(self._tallies()) if lacking else []
        if not tallies:
            return
        for item, share in zip(lacking, equal_runs(tallies, len(lacking)), strict=True):
            item.computes = share
        self.notes.append(
            Note("the atomics in shared memory that implement a histogram are counted as its computes")
        )

    def _tallies(self) -> Iterable[int]:
        instructions, in_shared = self._code.function.instructions, self._code.language.in_shared
        for index in self._code.find(_ATOMICS, self._region.whole):
            if in_shared(instructions[index]):
                yield index


def _steps(item: ReferenceRound) -> frozenset[int]:
    return frozenset(index for compute in item.computes for step in compute.steps for index in step)

"""Locates the direct computes of a region's rounds at a stage.

Source locations are compared first. Operations of the program that share a location are distinguished by dataflow, or
else split in program order. A compute without an instruction of its own is located at its nearest consumer.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain
from artifact_inspector.analysis.flow.traversal import group_by_key, set_bit_indices
from artifact_inspector.analysis.order.dataflow_locator import find_computes_using
from artifact_inspector.analysis.order.placement import LocatedRound, PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, ReferenceRound, equal_runs
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import EventKind

_ATOMICS = frozenset({EventKind.ATOMIC})
_INTEGERS = frozenset({EventKind.INTEGER})
NOT_FOUND = -1
"""Level of a round if neither its computes nor their consumers have an instruction at their locations."""


class ComputeLocator:
    """Finds the computes of one region, after its loads have been located."""

    def __init__(
        self, code: FunctionCode, region: Region, reference: ReferenceRegion, previous: PreviousStage | None
    ) -> None:
        self._code, self._region, self._reference, self._previous = code, region, reference, previous
        self._integer_locations = {
            code.visible_chain(chain)
            for reference_round in reference.rounds
            for compute in reference_round.computes
            if compute.is_integer
            for level in compute.chains
            for chain in level
        }
        self._slots = code.compute_once(reference.program_computes.find_visible)
        self._round_computes = frozenset[int]().union(*map(_steps, reference.rounds))
        """Computes of the program that belong to a round, or follow one on the path to its anchor."""
        self._uncertain_rounds: set[int] = set()
        """Rounds whose computes were distinguished from others on their line only by their position in a sequence."""
        self._computes_by_location: dict[Chain, list[int]] = {}
        """Cache: source location → computes of the region there."""
        self._first_users: list[list[int]] | None = None
        self.notes: list[RegionNote] = []

    def run(self, located: list[LocatedRound]) -> None:
        """Fill in the computes of rounds whose loads have been located."""
        levels = [self._level(reference) for reference in self._reference.rounds]
        owners = group_by_key(
            (chain, number)
            for number, level in enumerate(levels)
            for chain in self._locations(number, level, level + 1)
        )
        for chain, rounds in owners.items():
            self._distribute(chain, rounds, levels, located)
        for number, located_round in enumerate(located):
            self._complete(number, located_round, levels[number], located)
            located_round.computes = sorted(set(located_round.computes), key=self._code.flow.position.__getitem__)
            located_round.identified_computes = self._identify_computes(number, located_round)
        self._assign_histogram_atomics([r for r in located if r.has_loads and not r.computes])

    def _level(self, reference: ReferenceRound) -> int:
        """0 if a direct compute has an instruction at its own location, n if its n-th consumer does."""
        deepest = max((len(compute.chains) for compute in reference.computes), default=0)
        for level in range(deepest):
            levels = (compute.chains[level] for compute in reference.computes if level < len(compute.chains))
            if any(self._computes_at(self._code.visible_chain(chain)) for chains in levels for chain in chains):
                return level
        return NOT_FOUND

    def _locations(self, number: int, first: int, stop: int | None) -> list[Chain]:
        """Locations that hold a round's computes, or their consumers `first` to `stop` steps away."""
        if first < 0:
            return []
        locations: dict[Chain, None] = {}
        for compute in self._reference.rounds[number].computes:
            levels = compute.chains[min(first, len(compute.chains) - 1) : stop]
            for chain in (self._code.visible_chain(chain) for level in levels for chain in level):
                if chain is not None and self._computes_at(chain):
                    locations[chain] = None
        return list(locations)

    def _computes_at(self, chain: Chain | None) -> list[int]:
        if chain is None:
            return []
        if chain not in self._computes_by_location:
            block_of, blocks = self._code.flow.block_of, self._region.enclosed_blocks
            self._computes_by_location[chain] = [i for i in self._all_computes_at(chain) if block_of[i] in blocks]
        return self._computes_by_location[chain]

    def _all_computes_at(self, chain: Chain) -> list[int]:
        computes = self._code.computes_at.get(chain, [])
        return computes or self._code.integers_at.get(chain, []) if chain in self._integer_locations else computes

    def _distribute(self, chain: Chain, owning: list[int], levels: list[int], located: list[LocatedRound]) -> None:
        """Distribute the computes at one location over the rounds that have computes there."""
        instructions = self._code.instructions
        function_computes = self._region.instructions_before_loop(self._code, self._all_computes_at(chain))
        for indices, slots, rounds in self._by_kind(chain, owning, levels):
            kinds = {instructions[index].kind for index in indices}
            front = [index for index in function_computes if instructions[index].kind in kinds]
            owned_slots = [self._slots_of_round(number, levels[number], slots) for number in rounds]
            if all(owned_slots) and not self._round_computes.issuperset(slots):
                shares = self._share_by_slot(indices, rounds, owned_slots, len(slots), located)
            else:
                shares = [indices] if len(rounds) == 1 else self._share_by_dataflow(indices, rounds, located)
            for number, share in zip(rounds, shares, strict=True):
                located[number].computes += share
                # Rounds on one line (an unrolled loop of the program) peel in proportion to what they keep inside.
                peeled = round(len(front) * len(share) / len(indices))
                located[number].computes_before_loop += front[:peeled]

    def _by_kind(
        self, chain: Chain, owning: list[int], levels: list[int]
    ) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """The computes at a location, the program's computes there, and the rounds that own some.

        If both hold matrix operations and others (`acc += dot(a, b) * scale` on one line), they are yielded separately:
        a multiplication never becomes a matrix operation.
        """
        peers, instructions = self._reference.program_computes, self._code.instructions
        indices, slots = self._computes_at(chain), self._slots_at(chain)
        groups = [
            (
                [i for i in indices if (instructions[i].kind is EventKind.MATRIX) is is_matrix],
                [slot for slot in slots if peers.is_matrix(slot) is is_matrix],
            )
            for is_matrix in (True, False)
        ]
        if not all(group_indices and group_slots for group_indices, group_slots in groups):
            yield indices, slots, owning
            return
        for group_indices, group_slots in groups:
            rounds = [number for number in owning if self._slots_of_round(number, levels[number], group_slots)]
            if rounds:
                yield group_indices, group_slots, rounds

    def _slots_at(self, chain: Chain) -> list[int]:
        """The program's computes at a location that are in this region, in program order."""
        loop, peers = self._reference.loop, self._reference.program_computes
        return [index for index in self._slots.get(chain, ()) if peers.is_inside(index, loop)]

    def _slots_of_round(self, number: int, level: int, slots: list[int]) -> list[int]:
        """Indices into `slots` of the computes that belong to a round."""
        steps = set[int]()
        for compute in self._reference.rounds[number].computes:
            steps |= compute.steps[min(level, len(compute.steps) - 1)]
        return [slot_position for slot_position, index in enumerate(slots) if index in steps]

    def _share_by_slot(
        self, indices: list[int], rounds: list[int], slots: list[list[int]], count: int, located: list[LocatedRound]
    ) -> list[list[int]]:
        """Shares at a location that also has operations of no round (later copies of a round's line)."""
        runs = equal_runs(indices, count)
        if self._code.language.access_operands is None or len(indices) % count:
            self._uncertain_rounds.update(rounds)
        first_users = self._find_first_users(located)
        shares = []
        for number, slot_positions in zip(rounds, slots, strict=True):
            share = [index for slot_position in slot_positions for index in runs[slot_position]]
            shares.append([index for index in share if index in first_users[number]] or share)
        return shares

    def _share_by_dataflow(self, indices: list[int], rounds: list[int], located: list[LocatedRound]) -> list[list[int]]:
        """Split the computes at one location by the loads whose data they use, or else into equal runs."""
        candidates, first_users = set(indices), self._find_first_users(located)
        shares = [[i for i in first_users[number] if i in candidates] for number in rounds]
        return shares if all(shares) else equal_runs(indices, len(rounds))

    def _find_first_users(self, located: list[LocatedRound]) -> list[list[int]]:
        """For each round, the computes that are the first to use its data, by dataflow. Computed once."""
        if self._first_users is None:
            self._first_users = [[] for _ in located]
            users = find_computes_using(self._code, self._region, [located_round.loads for located_round in located])
            for index, bits in users.items():
                for number in set_bit_indices(bits):
                    self._first_users[number].append(index)
        return self._first_users

    def _complete(self, number: int, located_round: LocatedRound, level: int, located: list[LocatedRound]) -> None:
        """Add computes that were contracted into a consumer, or that carry another operation's line."""
        if not located_round.has_loads:
            return
        if level == NOT_FOUND:
            computes = self._find_first_users(located)[number]
            if not computes and all(compute.is_integer for compute in self._reference.rounds[number].computes):
                # A back end may merge several integer operations into one, at the line of any of them.
                computes = list(find_computes_using(self._code, self._region, [located_round.loads], _INTEGERS))
            located_round.computes = computes
            if computes:
                self.notes.append(RegionNote("computes located by dataflow: none is at its line", number + 1))
            return
        contracted = level > 0
        previous_count = 0 if self._previous is None else self._previous.computes.get(number, 0)
        if level == 0 and (len(located_round.computes) >= previous_count or len(located) == 1):
            return
        locations = self._locations(number, 0, None)
        candidates = {index for chain in locations for index in self._candidates_of_round(number, chain)}
        first_users = [index for index in self._find_first_users(located)[number] if index in candidates]
        if level == 0:
            contracted = bool(set(first_users) - set(located_round.computes))
            located_round.computes += first_users
        elif first_users:
            located_round.computes = first_users
        if contracted:
            located_round.is_contracted = True
            self.notes.append(RegionNote("computes were contracted into their consumers", number + 1))

    def _candidates_of_round(self, number: int, chain: Chain) -> list[int]:
        """The computes at a location that may belong to a round, or are on the path to its anchor."""
        indices, slots = self._computes_at(chain), self._slots_at(chain)
        steps = _steps(self._reference.rounds[number])
        if self._round_computes.issuperset(slots) or steps.isdisjoint(slots):
            return indices
        self._uncertain_rounds.add(number)
        runs = equal_runs(indices, len(slots))
        return [index for slot_position, slot in enumerate(slots) if slot in steps for index in runs[slot_position]]

    def _identify_computes(self, number: int, located_round: LocatedRound) -> frozenset[int] | None:
        """The program's direct computes that are located here, themselves or in a consumer."""
        if number in self._uncertain_rounds:
            return None
        locations = {self._code.chain(index) for index in located_round.computes}
        return frozenset(
            compute.index
            for compute in self._reference.rounds[number].computes
            if any(self._code.visible_chain(chain) in locations for level in compute.chains for chain in level)
        )

    def _assign_histogram_atomics(self, rounds_without_computes: list[LocatedRound]) -> None:
        """Use the shared-memory atomics of a histogram as computes of the rounds without any.

        Source: Triton, HistogramOpToLLVM.cpp. A program's own atomics go to global memory.
        """
        instructions, in_shared = self._code.instructions, self._code.language.accesses_shared
        found = self._code.find(_ATOMICS, self._region.enclosed_blocks) if rounds_without_computes else []
        atomics = [index for index in found if in_shared(instructions[index])]
        if not atomics:
            return
        shares = equal_runs(atomics, len(rounds_without_computes))
        for located_round, share in zip(rounds_without_computes, shares, strict=True):
            located_round.computes = share
        message = "the atomics in shared memory that implement a histogram are counted as its computes"
        self.notes.append(RegionNote(message))


def _steps(reference_round: ReferenceRound) -> frozenset[int]:
    return frozenset(index for compute in reference_round.computes for step in compute.steps for index in step)

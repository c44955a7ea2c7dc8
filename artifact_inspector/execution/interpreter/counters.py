"""What is counted while a program runs, instruction by instruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.program import Step


class Spent(Exception):  # noqa: N818 - a limit, no error
    """A program ran for more steps than it was given."""

    def __init__(self, step: Step, limit: int) -> None:
        super().__init__(f"{limit} steps")
        self.step = step
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Bounds:
    """An access outside of every tensor."""

    index: int
    """Of the step."""
    kind: str
    cta: int
    lane: int
    """Thread in the CTA."""
    address: int
    near: str
    """The tensor that ends or begins closest, and by how many bytes it was missed."""


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """The addresses of a warp's lanes in one access."""

    addresses: tuple[int | None, ...]
    """Of each lane in bytes; None where it takes no part."""
    size: int
    """Bytes of each lane."""
    cta: int
    warp: int
    """Of the CTA."""
    served: int = 32
    """Lanes that the opcode serves at a time: 8 for matrices, a row of 16 bytes each."""
    loads: bool = False
    """It is a load, whose lanes may share what they read."""
    operands: int = 0
    """Of an atomic, whose lanes share nothing; 0 for any other access."""


_BY_STEP = (
    "executed", "lanes", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal", "bytes", "rejoined",
    "divergent", "active",
)  # fmt: skip


@dataclass(slots=True)
class Counts:
    """Counts by step; unknown ones by the names of what was not given."""

    size: int
    limit: int = 50_000_000
    """Steps of all machines together, after which a program counts as endless."""
    executed: list[int] = field(init=False)
    """Warps that executed the instruction, its guard true or not (ncu: `smsp__inst_executed`)."""
    lanes: list[int] = field(init=False)
    """Threads for which the guard held."""
    sectors: list[int] = field(init=False)
    """32-byte sectors of global memory, counted for each warp's request on its own."""
    sectors_ideal: list[int] = field(init=False)
    """The same had the lanes' bytes stood side by side."""
    wavefronts: list[int] = field(init=False)
    wavefronts_ideal: list[int] = field(init=False)
    bytes: list[int] = field(init=False)
    """Asked for by all lanes together."""
    why: dict[int, int] = field(default_factory=dict)
    """Step → names of what its sectors or wavefronts depend on and was not given."""
    spent: int = 0
    arrays: int = 0
    """Registers and words of shared memory that had to be computed lane by lane."""
    rejoined: list[int] = field(init=False)
    """Parts of warps beyond one that a convergence barrier joined right before the instruction."""
    divergent: list[int] = field(init=False)
    """Warps whose lanes parted at the branch."""
    active: list[int] = field(init=False)
    """Threads that accessed memory."""
    outside: list[Bounds] = field(default_factory=list)
    """Accesses outside of every tensor, the first of each step."""
    more_outside: dict[int, int] = field(default_factory=dict)
    """Step → lanes that were outside, in all."""
    elsewhere: dict[int, int] = field(default_factory=dict)
    """Step → the names of memory that it accessed and that no argument is of."""
    shared: dict[int, WarpAccess] = field(default_factory=dict)
    """Step → a warp's access to shared memory, of those that lose most to bank conflicts."""
    lost: dict[int, float] = field(default_factory=dict)
    """Step → what the access that it is of loses, in wavefronts for each lane."""

    def __post_init__(self) -> None:
        for name in _BY_STEP:
            setattr(self, name, [0] * self.size)

    def beside(self, steps: int) -> Counts:
        """Counts of what is tried, for so many steps at most, to be added to these or thrown away."""
        other = Counts(self.size, steps)
        other.lost = dict(self.lost)
        return other

    def add(self, tried: Counts, trips: int, step: Step) -> None:
        """Count what was tried.

        Args:
            tried: made by `beside`.
            trips: that ran side by side there.
            step: the last.

        Raises:
            Spent: one after the other, they are more than there is left.
        """
        for name in _BY_STEP:
            mine = getattr(self, name)
            for at, count in enumerate(getattr(tried, name)):
                if count:
                    mine[at] += count
        for at, why in tried.why.items():
            self.mark(at, why)
        self.shared.update(tried.shared)
        self.lost.update(tried.lost)
        self.spent += tried.spent * trips
        self.arrays += tried.arrays * trips
        if self.spent > self.limit:
            raise Spent(step, self.limit)

    def spend(self, step: Step) -> None:
        """Count one step against the limit.

        Raises:
            Spent: there is none left.
        """
        self.spent += 1
        if self.spent > self.limit:
            raise Spent(step, self.limit)

    def excuse(self, index: int, why: int) -> None:
        """Note that what a step accessed outside of every tensor is memory that no argument is of."""
        self.elsewhere[index] = self.elsewhere.get(index, 0) | why
        self.outside = [found for found in self.outside if found.index != index]
        self.more_outside.pop(index, None)

    def mark(self, index: int, why: int) -> None:
        """Note that what an access touches is not known."""
        self.why[index] = self.why.get(index, 0) | why

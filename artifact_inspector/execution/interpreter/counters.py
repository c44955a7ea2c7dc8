"""Counters of a simulation, per instruction."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.program import Step


class Spent(Exception):  # noqa: N818 - a limit, no error
    """The step limit of a simulation was reached."""

    def __init__(self, step: Step, limit: int) -> None:
        super().__init__(f"{limit} steps")
        self.step = step
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Bounds:
    """An access outside of every tensor."""

    index: int
    """Index of the step."""
    kind: str
    cta: int
    lane: int
    """Thread number in the CTA."""
    address: int
    near: str
    """The nearest tensor, and the distance to it in bytes."""


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """The addresses of a warp's lanes in one access."""

    addresses: tuple[int | None, ...]
    """Byte address of each lane; None if it does not take part."""
    size: int
    """Bytes per lane."""
    cta: int
    warp: int
    """Warp number in the CTA."""
    served: int = 32
    """Lanes that the opcode serves at a time: 8 for LDSM and STSM, with 16 bytes each."""
    loads: bool = False
    """Whether it is a load, whose lanes may share words."""
    operands: int = 0
    """Operands per lane of an atomic, whose lanes share nothing; 0 for other accesses."""


@dataclass(slots=True)
class Counts:
    """Counters per step; for unknown ones, the names of the missing inputs."""

    size: int
    limit: int = 50_000_000
    """Steps of all machines together after which a program counts as endless."""
    executed: list[int] = field(init=False)
    """Warps that executed the instruction, whether or not its guard holds (ncu: `smsp__inst_executed`)."""
    lanes: list[int] = field(init=False)
    """Threads whose guard holds."""
    sectors: list[int] = field(init=False)
    """32-byte sectors of global memory, counted separately for each request of a warp."""
    sectors_ideal: list[int] = field(init=False)
    """The same if the bytes of the lanes were contiguous."""
    wavefronts: list[int] = field(init=False)
    wavefronts_ideal: list[int] = field(init=False)
    bytes: list[int] = field(init=False)
    """Bytes that all lanes request."""
    why: dict[int, int] = field(default_factory=dict)
    """Step → missing inputs that its sectors or wavefronts depend on, as a bit set."""
    spent: int = 0
    arrays: int = 0
    """Registers and shared memory words that were computed lane by lane."""
    rejoined: list[int] = field(init=False)
    """Parts of warps beyond one that a convergence barrier merged right before the instruction."""
    divergent: list[int] = field(init=False)
    """Warps whose lanes diverged at the branch."""
    active: list[int] = field(init=False)
    """Threads that accessed memory."""
    outside: list[Bounds] = field(default_factory=list)
    """Accesses outside of every tensor, the first of each step."""
    more_outside: dict[int, int] = field(default_factory=dict)
    """Step → number of out-of-bounds lanes."""
    elsewhere: dict[int, int] = field(default_factory=dict)
    """Step → names of the memory that it accessed through pointers of unknown origin, as a bit set."""
    shared: dict[int, WarpAccess] = field(default_factory=dict)
    """Step → a warp's access to shared memory, of those with the most bank conflicts."""
    lost: dict[int, float] = field(default_factory=dict)
    """Step → excess wavefronts per lane of the access that it was taken from."""

    def __post_init__(self) -> None:
        for name in _per_step():
            setattr(self, name, [0] * self.size)

    def beside(self, steps: int) -> Counts:
        """Counters for a speculative run of at most so many steps, to be added to these or discarded."""
        other = Counts(self.size, steps)
        other.lost = dict(self.lost)
        return other

    def add(self, tried: Counts, trips: int, step: Step) -> None:
        """Add the counters of a speculative run.

        Args:
            tried: made by `beside`.
            trips: iterations that ran in parallel there.
            step: the last step.

        Raises:
            Spent: run one after the other, they exceed the step limit.
        """
        for name in _per_step():
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
        """Count one step towards the limit.

        Raises:
            Spent: the limit was reached.
        """
        self.spent += 1
        if self.spent > self.limit:
            raise Spent(step, self.limit)

    def excuse(self, index: int, why: int) -> None:
        """Reclassify the out-of-bounds accesses of a step as accesses through pointers of unknown origin."""
        self.elsewhere[index] = self.elsewhere.get(index, 0) | why
        self.outside = [found for found in self.outside if found.index != index]
        self.more_outside.pop(index, None)

    def mark(self, index: int, why: int) -> None:
        """Record that the addresses of a step are unknown."""
        self.why[index] = self.why.get(index, 0) | why


@cache
def _per_step() -> tuple[str, ...]:
    """Names of the counters that have one entry per step."""
    return tuple(entry.name for entry in fields(Counts) if not entry.init)

"""Counters of a simulation, per instruction."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache

from artifact_inspector.execution.interpreter.budget import SimulationBudget, current_budget
from artifact_inspector.execution.interpreter.program import ProgramStep

STEPS_PER_CHECK = 128
"""Steps between two looks at the clock."""


class StepLimitReached(Exception):  # noqa: N818 - a limit, no error
    """The step limit of a simulation was reached."""

    def __init__(self, step: ProgramStep, limit: int) -> None:
        super().__init__(f"{limit} steps")
        self.step = step
        self.limit = limit

    @property
    def reason(self) -> str:
        """Why the simulation stopped."""
        return f"no end after {self.limit} steps"


class BudgetSpent(StepLimitReached):
    """The processor time of a command is used up."""

    def __init__(self, step: ProgramStep, budget: SimulationBudget) -> None:
        super().__init__(step, 0)
        self._budget = budget

    @property
    def reason(self) -> str:
        """Why the simulation stopped."""
        return self._budget.reason


@dataclass(frozen=True, slots=True)
class OutOfBoundsAccess:
    """An access outside of every tensor."""

    step_index: int
    """Index of the step."""
    kind: str
    cta: int
    thread: int
    """Thread number in the CTA."""
    address: int
    nearest_tensor: str
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
    lanes_per_group: int = 32
    """Lanes that the opcode serves at a time: 8 for LDSM and STSM, with 16 bytes each."""
    is_load: bool = False
    """Whether it is a load, whose lanes may share words."""
    operands: int = 0
    """Operands per lane of an atomic, whose lanes share nothing; 0 for other accesses."""


@dataclass(slots=True)
class StepCounters:
    """Counters per step; for unknown ones, the names of the missing inputs."""

    step_count: int
    step_limit: int = 50_000_000
    """Steps of all machines together after which a program counts as endless."""
    counts_requests: bool = True
    """Whether sectors and wavefronts are counted; without them, accesses to memory are simulated much faster."""
    warps_executed: list[int] = field(init=False)
    """Warps that executed the instruction, whether or not its guard holds (ncu: `smsp__inst_executed`)."""
    threads_executed: list[int] = field(init=False)
    """Threads whose guard holds."""
    sectors: list[int] = field(init=False)
    """32-byte sectors of global memory, counted separately for each request of a warp."""
    sectors_ideal: list[int] = field(init=False)
    """The same if the bytes of the lanes were contiguous."""
    wavefronts: list[int] = field(init=False)
    wavefronts_ideal: list[int] = field(init=False)
    bytes_requested: list[int] = field(init=False)
    """Bytes that all lanes request."""
    missing_inputs: dict[int, int] = field(default_factory=dict)
    """Step → missing inputs that its sectors or wavefronts depend on, as a bit set."""
    spent: int = 0
    arrays: int = 0
    """Registers and shared memory words that were computed lane by lane."""
    reconverged_parts: list[int] = field(init=False)
    """Parts of warps beyond one that a convergence barrier merged right before the instruction."""
    divergent_warps: list[int] = field(init=False)
    """Warps whose lanes diverged at the branch."""
    active_threads: list[int] = field(init=False)
    """Threads that accessed memory."""
    accessing_ctas: list[int] = field(init=False)
    """Executions by a CTA of which a thread accessed global memory."""
    tensor_copies: list[int] = field(init=False)
    """Copies by the tensor memory accelerator: one for each warp whose guard holds."""
    undecided_copies: list[int] = field(init=False)
    """Executions of such a copy whose guard is unknown."""
    out_of_bounds: list[OutOfBoundsAccess] = field(default_factory=list)
    """Accesses outside of every tensor, the first of each step."""
    out_of_bounds_lanes: dict[int, int] = field(default_factory=dict)
    """Step → number of out-of-bounds lanes."""
    unknown_pointers: dict[int, int] = field(default_factory=dict)
    """Step → names of the memory that it accessed through pointers of unknown origin, as a bit set."""
    worst_shared_access: dict[int, WarpAccess] = field(default_factory=dict)
    """Step → a warp's access to shared memory, of those with the most bank conflicts."""
    worst_conflict_rate: dict[int, float] = field(default_factory=dict)
    """Step → excess wavefronts per lane of the access that it was taken from."""

    budget: SimulationBudget | None = field(init=False)
    _next_check: int = field(default=0, init=False)
    """Steps after which a limit may be reached."""

    def __post_init__(self) -> None:
        self.budget = current_budget()
        self._next_check = self.step_limit if self.budget is None else 0
        for name in _per_step():
            setattr(self, name, [0] * self.step_count)

    def speculative_copy(self, step_limit: int) -> StepCounters:
        """Counters for a speculative run of at most so many steps, to be added to these or discarded."""
        speculative = StepCounters(self.step_count, step_limit, self.counts_requests)
        speculative.worst_conflict_rate = dict(self.worst_conflict_rate)
        return speculative

    def add(self, speculative: StepCounters, iterations: int, step: ProgramStep) -> None:
        """Add the counters of a speculative run.

        Args:
            speculative: made by `speculative_copy`.
            iterations: iterations that ran in parallel there.
            step: the last step.

        Raises:
            StepLimitReached: run one after the other, they exceed the step limit.
        """
        for name in _per_step():
            totals = getattr(self, name)
            for step_index, count in enumerate(getattr(speculative, name)):
                if count:
                    totals[step_index] += count
        for step_index, missing_inputs in speculative.missing_inputs.items():
            self.mark_unknown(step_index, missing_inputs)
        self.worst_shared_access.update(speculative.worst_shared_access)
        self.worst_conflict_rate.update(speculative.worst_conflict_rate)
        self.spent += speculative.spent * iterations
        self.arrays += speculative.arrays * iterations
        if self.spent > self._next_check:
            self._check_limits(step)

    def spend_step(self, step: ProgramStep) -> None:
        """Count one step towards the limit.

        Raises:
            StepLimitReached: the limit was reached.
        """
        self.spent += 1
        if self.spent > self._next_check:
            self._check_limits(step)

    def _check_limits(self, step: ProgramStep) -> None:
        if self.spent > self.step_limit:
            raise StepLimitReached(step, self.step_limit)
        if self.budget is not None:
            if self.budget.is_spent():
                raise BudgetSpent(step, self.budget)
            self._next_check = min(self.step_limit, self.spent + STEPS_PER_CHECK)

    def reclassify_out_of_bounds(self, index: int, pointer_origin: int) -> None:
        """Reclassify the out-of-bounds accesses of a step as accesses through pointers of unknown origin."""
        self.unknown_pointers[index] = self.unknown_pointers.get(index, 0) | pointer_origin
        self.out_of_bounds = [access for access in self.out_of_bounds if access.step_index != index]
        self.out_of_bounds_lanes.pop(index, None)

    def mark_unknown(self, index: int, missing_inputs: int) -> None:
        """Record that the addresses of a step are unknown."""
        self.missing_inputs[index] = self.missing_inputs.get(index, 0) | missing_inputs


@cache
def _per_step() -> tuple[str, ...]:
    """Names of the counters that have one entry per step."""
    without_entries = ("budget", "_next_check")
    return tuple(entry.name for entry in fields(StepCounters) if not entry.init and entry.name not in without_entries)

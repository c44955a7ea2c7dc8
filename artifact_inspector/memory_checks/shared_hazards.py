"""Hazards in shared memory: missing barriers, copies that are not awaited, reads of bytes that nothing wrote.

The first and the last CTA run again, with every barrier and wait observed: together, if they behave alike and have no
error, else one by one. Not modelled are clusters, bulk copies and some products in tensor memory; kernels that use them
are undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.machine import UNINITIALIZED
from artifact_inspector.execution.interpreter.observation import SharedMemoryAccess
from artifact_inspector.execution.interpreter.program import ProgramStep, UndecidedPath
from artifact_inspector.execution.interpreter.state import MachineState
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.sass.tma import SHARED_WINDOW
from artifact_inspector.execution.simulation import run_machines, set_up_launch
from artifact_inspector.memory_checks.mbarriers import describe_pending
from artifact_inspector.memory_checks.observed_steps import COPY_QUEUE, MBARRIER_WAIT, CtasDiffer, StepWatch, observed
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, site_of
from artifact_inspector.memory_checks.shared_state import CAPACITY, TENSOR_COLUMNS, AsyncKind, Hazard

MOST_STEPS = 30_000
"""Instructions of each CTA that are checked."""
_MOST_STEPS_OF_BOTH = 6_000
"""Instructions of the first CTA beyond which the last one is not checked too."""
_SHARED_KINDS = ("shared", "matrix_load", "matrix_store", "copy")
_NOT_MODELLED = re.compile(r"U?SYNCS|UTMA(LDG|STG|REDG)|UBLK|[HIQB]GMMA|UTC|ARRIVES|LDTM|STTM|UCGABAR|MAPA")
_MODELLED = re.compile(
    r"(SYNCS\.(EXCH\.64|CCTL\.IV|ARRIVE\.TRANS64(\.RED)?(\.A[01]T[0R]|\.ART0)?|PHASECHK\.TRANS64(\.TRYWAIT)?)"
    r"|UTMA(LDG|STG)\.\dD|[HIQ]GMMA\.64x\d+x\d+(\.(?!SP)\w+)*|UTCATOMSWS.*|UTCHMMA|UTCCP\.T\.S|UTCBAR|(LDTM|STTM)(\.16dp\d+bit\w*)?(\.x\d+)?)$"
)


@dataclass(frozen=True, slots=True)
class SharedMemoryCheck:
    """Errors in shared memory."""

    problems: tuple[MemoryProblem, ...] = ()
    undecided: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_shared_memory(loaded: LoadedKernel, launch: KernelLaunch) -> SharedMemoryCheck:
    """Errors in the shared memory of the first and the last CTA of a launch.

    Args:
        launch: with an address for every tensor.
    """
    steps = loaded.program.steps
    if launch.cluster_size > 1:
        return SharedMemoryCheck(undecided=("shared memory: clusters of several CTAs are not modelled",))
    if not any(step.kind.startswith(_SHARED_KINDS) or _NOT_MODELLED.match(step.opcode) for step in steps):
        return SharedMemoryCheck()
    unknown = next((step for step in steps if _is_not_modelled(step, loaded)), None)
    if unknown is not None:
        # the matrix instructions of sm_90 and later; sm_80 has none of them
        remedy = "; check the program with -t A100" if "GMMA" in unknown.opcode else ""
        return SharedMemoryCheck(undecided=(f"shared memory: {unknown.opcode} is not modelled{remedy}",))
    problems: dict[object, MemoryProblem] = {}
    undecided: list[str] = []
    notes: list[str] = []
    spent, ctas = 0, sorted({0, launch.ctas - 1})
    if len(ctas) > 1 and (counters := _run_alike(loaded, launch, ctas)) is not None:
        ctas = []
        if counters.spent > MOST_STEPS:
            notes.append(f"shared memory: the first {MOST_STEPS:,} instructions of two CTAs were checked")
    for cta in ctas:
        if spent > _MOST_STEPS_OF_BOTH:
            notes.append("shared memory: CTA 0 was checked")
            break
        watch, counters = _run_ctas(loaded, launch, [cta])
        spent += counters.spent
        for key, (hazard, lanes) in watch.state.hazards.items():
            problems.setdefault(key, _describe(steps, cta, hazard, lanes))
        for problem in _further_problems(watch, cta):
            problems.setdefault((problem.check, problem.site), problem)
        undecided += dict.fromkeys(watch.undecided)
        if counters.spent > MOST_STEPS:
            notes.append(f"shared memory: the first {MOST_STEPS:,} instructions of CTA {cta} were checked")
    return SharedMemoryCheck(tuple(problems.values()), tuple(undecided), tuple(notes))


def _is_not_modelled(step: ProgramStep, loaded: LoadedKernel) -> bool:
    if loaded.initial_state is not None:  # AMD: direct copies into LDS have no modelled address
        return step.kind == "copy" or re.search(r" lds\b|_lds_", step.text) is not None
    return _NOT_MODELLED.match(step.opcode) is not None and _MODELLED.match(step.opcode) is None


class _SharedWatch(StepWatch):
    """Observes the run of one CTA, or of several that behave alike."""

    def __init__(self, steps: Sequence[ProgramStep], threads: int, warp_size: int, ctas: int) -> None:
        super().__init__(threads, warp_size, ctas)
        self.steps = steps
        self.undecided: list[str] = []
        self.deadlock: list[tuple[ProgramStep, str]] = []
        """Where warps wait for ever, and for what."""
        self.unwritten: dict[int, tuple[str, ...]] = {}
        """Step whose address depends on registers only that nothing has written → these."""

    @property
    def is_clean(self) -> bool:
        """Whether it found no error, and decided everything."""
        errors = (self.state.hazards, self.mbarriers.errors, self.deadlock, self.unwritten, self.undecided)
        return not any(errors)

    def observe_shared(self, access: SharedMemoryAccess) -> None:
        if access.ctas != self.ctas:
            raise CtasDiffer
        step, state = access.step, self.state
        addresses = self.common_row(access.addresses, access.addresses.shape)
        threads = np.arange(len(addresses))
        if access.mask is not None:
            threads = np.flatnonzero(self.common_row(access.mask, access.mask.shape))
        addresses, agents = addresses[threads], None
        if step.opcode.startswith("UTMALDG"):
            started = [self._start_copy(step, thread, access.size) for thread in threads.tolist()]
            threads, addresses = (x[[agent is not None for agent in started]] for x in (threads, addresses))
            agents = np.array([agent for agent in started if agent is not None], np.int64)
        elif step.kind == "copy" or step.opcode.startswith("UTMASTG"):
            warps, of_warp = np.unique(threads // self.warp_size, return_inverse=True)
            started = [state.enqueue(COPY_QUEUE, AsyncKind.COPY, warps[at : at + 1]) for at in range(len(warps))]
            agents = np.array(started, np.int64)[of_warp]
        is_atomic = step.kind == "shared_atomic"
        if access.is_store:
            state.store(step.index, threads, addresses, access.size, agents, is_atomic=is_atomic)
        elif not is_atomic:
            state.load(step.index, threads, addresses, access.size, agents)

    def _start_copy(self, step: ProgramStep, thread: int, size: int) -> int | None:
        barrier = self.copy_barriers.get(thread)
        if barrier is None:
            return None
        return self.mbarriers.copy(step.index, barrier & SHARED_WINDOW, thread // self.warp_size, size)

    def observe_deadlock(self, state: MachineState) -> None:
        """Note who waits for what, and end the run."""
        if self.ctas > 1:
            raise CtasDiffer
        if any(not group.barrier.startswith((MBARRIER_WAIT, "BAR ", "s_barrier")) for group in state.waiting):
            return  # lanes of a warp wait for each other
        for group in state.waiting:
            waits_for_phase = group.barrier == MBARRIER_WAIT
            step = self.steps[group.pc if waits_for_phase else group.pc - 1]
            warps = self.warps_of(np.flatnonzero(np.broadcast_to(group.mask, (1, state.threads))[0])).tolist()
            subject = f"warp {warps[0]} waits" if len(warps) == 1 else f"warps {warps[0]} to {warps[-1]} wait"
            reason = "other warps never arrive at the barrier"
            if waits_for_phase:
                reason = describe_pending(self.mbarriers.barriers[address := self.waits[step.index]], address)
            self.deadlock.append((step, f"{subject} for ever: {reason}"))
        raise UndecidedPath(self.steps[0], ("a deadlock",))


def find_unwritten_registers(loaded: LoadedKernel, launch: KernelLaunch) -> list[MemoryProblem]:
    """Matrix descriptors of the first CTA that come from registers which nothing has written; of its beginning only."""
    steps = loaded.program.steps
    if launch.cluster_size > 1 or not any(_DESCRIPTOR_PRODUCT.match(step.opcode) for step in steps):
        return []
    watch, _ = _run_ctas(loaded, launch, [0], _STEPS_OF_BEGINNING)
    return [one for one in _further_problems(watch, 0) if one.check is Check.UNINITIALIZED_REGISTER]


_DESCRIPTOR_PRODUCT = re.compile(r"[HIQ]GMMA|UTC[HQ]MMA")
_STEPS_OF_BEGINNING = 6_000
"""Steps of one CTA that reach each product of a loop in the kernels seen so far."""


def _run_alike(loaded: LoadedKernel, launch: KernelLaunch, ctas: list[int]) -> StepCounters | None:
    """The counters of CTAs that run together; None if they do not behave alike, or if there is an error."""
    try:
        watch, counters = _run_ctas(loaded, launch, ctas)
    except CtasDiffer:
        return None
    return counters if watch.is_clean else None


def _run_ctas(
    loaded: LoadedKernel, launch: KernelLaunch, ctas: list[int], most_steps: int = MOST_STEPS
) -> tuple[_SharedWatch, StepCounters]:
    """Run CTAs that behave alike under observation.

    Raises:
        CtasDiffer: they do not.
    """
    program = loaded.program.counting or loaded.program
    watch = _SharedWatch(program.steps, loaded.threads, program.warp_size, len(ctas))
    program = replace(program, steps=tuple(observed(step, watch) for step in program.steps))
    counters = StepCounters(len(program.steps), most_steps, counts_requests=False)
    setup = set_up_launch(replace(loaded, program=program), launch, counters, runs_in_parallel=False)
    setup.memory.observer = watch
    setup.memory.tracks_touches = False
    ends = run_machines(setup.machine(np.array(ctas, np.int64)))
    watch.undecided += [
        f"shared memory of CTA {ctas[0]}: it stops at {site_of(end.step)}: {', '.join(end.reasons)}"
        for end in ends
        if not watch.deadlock and counters.spent <= most_steps
    ]
    unknown = {
        at: bits for at, bits in counters.missing_inputs.items() if program.steps[at].kind.startswith(_SHARED_KINDS)
    }
    for index, bits in {**unknown, **watch.missing_inputs}.items():
        names = setup.input_names.names_in(bits)
        registers = tuple(name.removeprefix(UNINITIALIZED) for name in names if name.startswith(UNINITIALIZED))
        if len(registers) == len(names) and not program.unsupported_opcodes:
            watch.unwritten[index] = registers
        else:
            watch.undecided.append(f"shared memory: an address depends on {', '.join(names)}")
    return watch, counters


def _further_problems(watch: _SharedWatch, cta: int) -> Iterator[MemoryProblem]:
    """The deadlock of a CTA, its wrong uses of mbarriers, and addresses from registers that nothing has written."""
    for (index, error), (warp, address) in watch.mbarriers.errors.items():
        site, thread = site_of(watch.steps[index]), warp * watch.warp_size
        message = f"warp {warp} {error} at byte {address:,} of shared memory"
        yield MemoryProblem(Check.MBARRIER, message, site, None, cta, thread, address)
    for index, registers in watch.unwritten.items():
        message = (
            f"the address or matrix descriptor comes from {', '.join(registers)}, which no instruction has written"
        )
        remedy = "This is an error of the compiler: use another version, or another configuration."
        site = site_of(watch.steps[index])
        yield MemoryProblem(Check.UNINITIALIZED_REGISTER, message, site, cta=cta, suggestion=remedy)
    if watch.deadlock:
        (step, message), *others = watch.deadlock
        message = "; ".join([message, *(f"{site_of(other)}: {text}" for other, text in others)])
        yield MemoryProblem(Check.DEADLOCK, message, site_of(step), cta=cta)


def _describe(steps: tuple[ProgramStep, ...], cta: int, hazard: Hazard, lanes: int) -> MemoryProblem:
    action = "writes" if hazard.is_store else "reads"
    place = f"byte {hazard.address:,} of shared memory"
    if hazard.address >= CAPACITY:
        place = f"column {(hazard.address - CAPACITY) % TENSOR_COLUMNS} of tensor memory"
    other = None if hazard.other_step is None else site_of(steps[hazard.other_step])
    if hazard.check is Check.UNINITIALIZED:
        message = f"warp {hazard.warp} reads {place}, which nothing has written"
        suggestion = "Store to the buffer first, or check the buffer index."
    else:
        action = f"warp {hazard.warp} {action} {place}"
        if hazard.check is Check.UNAWAITED_COPY:
            message = f"{action} while an asynchronous copy of warp {hazard.other_warp} may still write it"
            suggestion = "Wait for the copy (cp.async.wait_group, or its mbarrier), then synchronize the CTA."
        elif hazard.check in (Check.UNAWAITED_PRODUCT, Check.OPERAND_IN_USE):
            use = "write" if hazard.check is Check.UNAWAITED_PRODUCT else "read"
            message = f"{action} while what warp {hazard.other_warp} started may still {use} it"
            suggestion = "Wait for the matrix product or the copy first."
        elif hazard.check is Check.MISSING_FENCE:
            message = f"{action} through the asynchronous proxy, which warp {hazard.other_warp} wrote without a fence"
            suggestion = "A proxy fence (fence.proxy.async) is missing after the write."
        else:
            earlier = "wrote" if hazard.is_other_store else "read"
            message = f"{action}, which warp {hazard.other_warp} {earlier} without a barrier in between"
            suggestion = "A barrier of the CTA is missing between the two."
    return MemoryProblem(
        check=hazard.check,
        message=message,
        site=site_of(steps[hazard.step]),
        cta=cta,
        thread=hazard.thread,
        address=hazard.address,
        lanes=lanes,
        other_site=other,
        suggestion=suggestion,
    )

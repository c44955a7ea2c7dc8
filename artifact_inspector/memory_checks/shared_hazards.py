"""Hazards in shared memory: missing barriers, copies that are not awaited, reads of bytes that nothing wrote.

Some CTAs run again one by one, with every barrier and wait observed. Not modelled are mbarriers, the tensor
memory accelerator and warpgroup products; kernels that use them are undecided.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.observation import GlobalAccess, SharedMemoryAccess
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.simulation import run_machines, set_up_launch
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, site_of
from artifact_inspector.memory_checks.shared_state import Hazard, SharedState

MOST_STEPS = 30_000
"""Instructions of each CTA that are checked."""
_MOST_STEPS_OF_BOTH = 6_000
"""Instructions of the first CTA beyond which the last one is not checked too."""
_SHARED_KINDS = ("shared", "matrix_load", "matrix_store", "copy")
_NOT_MODELLED = re.compile(r"SYNCS|UTMA(LDG|STG|REDG)|UBLK|[HIQB]GMMA|UTC|ARRIVES|LDTM|STTM|UCGABAR|MAPA")
_BARRIER = re.compile(r"BAR[. ]|s_barrier(?!_signal)")
_BARRIER_NUMBERS = re.compile(r"0x[0-9a-f]+|\b\d+\b")


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
    if not any(step.kind.startswith(_SHARED_KINDS) for step in steps):
        return SharedMemoryCheck()
    unknown = next((step for step in steps if _is_not_modelled(step, loaded)), None)
    if unknown is not None:
        return SharedMemoryCheck(undecided=(f"shared memory: {unknown.opcode} is not modelled",))
    hazards: dict[tuple[Check, int, int | None], tuple[int, Hazard, int]] = {}
    undecided: list[str] = []
    notes: list[str] = []
    spent = 0
    for cta in sorted({0, launch.ctas - 1}):
        if spent > _MOST_STEPS_OF_BOTH:
            notes.append("shared memory: CTA 0 was checked")
            break
        watch, counters = _run_cta(loaded, launch, cta)
        spent += counters.spent
        for key, (hazard, lanes) in watch.state.hazards.items():
            hazards.setdefault(key, (cta, hazard, lanes))
        undecided += watch.undecided
        for names in dict.fromkeys(watch.unknown.values()):
            undecided.append(f"shared memory: an address depends on {', '.join(names)}")
        if counters.spent > MOST_STEPS:
            notes.append(f"shared memory: the first {MOST_STEPS:,} instructions of CTA {cta} were checked")
    problems = tuple(_describe(steps, *row) for row in hazards.values())
    return SharedMemoryCheck(problems, tuple(undecided), tuple(notes))


def _is_not_modelled(step: ProgramStep, loaded: LoadedKernel) -> bool:
    if loaded.initial_state is not None:  # AMD: direct copies into LDS have no modelled address
        return step.kind == "copy" or re.search(r" lds\b|_lds_", step.text) is not None
    opcode = step.opcode.removeprefix("U") if step.opcode.startswith("US") else step.opcode
    return _NOT_MODELLED.match(opcode) is not None


class _SharedWatch:
    def __init__(self, threads: int, warp_size: int) -> None:
        self.state = SharedState(threads, warp_size)
        self.unknown: dict[int, tuple[str, ...]] = {}
        """Step with unknown addresses → the inputs that they depend on."""
        self.undecided: list[str] = []

    def observe_global(self, access: GlobalAccess) -> None:
        """Ignore an access to global memory."""

    def observe_shared(self, access: SharedMemoryAccess) -> None:
        step, addresses = access.step, access.addresses[0]
        threads = np.arange(len(addresses)) if access.mask is None else np.flatnonzero(access.mask[0])
        is_atomic = step.kind == "shared_atomic"
        if access.is_store:
            is_copy = step.kind == "copy"
            self.state.store(step.index, threads, addresses[threads], access.size, is_copy=is_copy, is_atomic=is_atomic)
        elif not is_atomic:
            self.state.load(step.index, threads, addresses[threads], access.size)


def _run_cta(loaded: LoadedKernel, launch: KernelLaunch, cta: int) -> tuple[_SharedWatch, StepCounters]:
    watch = _SharedWatch(loaded.threads, loaded.program.warp_size)
    program = replace(loaded.program, steps=tuple(_observed(step, watch.state) for step in loaded.program.steps))
    counters = StepCounters(len(program.steps), MOST_STEPS)
    counters.worst_conflict_rate = dict.fromkeys(range(len(program.steps)), math.inf)  # no warp is kept for pictures
    setup = set_up_launch(replace(loaded, program=program), launch, counters, runs_in_parallel=False)
    setup.memory.observer = watch
    setup.memory.tracks_touches = False
    ends = run_machines(setup.machine(np.array([cta], np.int64)))
    if counters.budget is not None and any(counters.budget.reason in end.reasons for end in ends):
        watch.undecided.append(f"shared memory of CTA {cta}: {counters.budget.reason}")
    for index, bits in counters.missing_inputs.items():
        if program.steps[index].kind.startswith(("shared", "matrix")):
            watch.unknown[index] = setup.input_names.names_in(bits)
    return watch, counters


def _observed(step: ProgramStep, state: SharedState) -> ProgramStep:
    """The step; if it is a barrier, a commit or a wait, its run also updates the state."""
    run = step.run
    if _BARRIER.match(f"{step.opcode} "):
        numbers = [int(text, 0) for text in _BARRIER_NUMBERS.findall(step.text.partition("BAR")[2])]
        name, count = f"barrier {numbers[0] if numbers else 0}", numbers[1] if len(numbers) > 1 else None
        waits = ".ARV" not in step.opcode

        def run_barrier(machine: Machine) -> bool | None:
            threads = _threads_of(machine)
            exited = int(np.broadcast_to(machine.exited, (1, machine.threads)).sum())
            needed = machine.threads - exited if count is None else count
            warps = np.unique(threads // machine.program.warp_size)
            state.arrive(name, warps, len(threads), needed, waits=waits)
            return run(machine)

        return replace(step, run=run_barrier)
    if step.opcode == "LDGDEPBAR":

        def run_commit(machine: Machine) -> bool | None:
            state.commit_copies(_threads_of(machine))
            return run(machine)

        return replace(step, run=run_commit)
    match = re.search(r"DEPBAR\.LE SB0, (0x[0-9a-f]+|\d+)", step.text)
    if match is not None:
        pending = int(match[1], 0)

        def run_wait(machine: Machine) -> bool | None:
            state.wait_for_copies(_threads_of(machine), pending)
            return run(machine)

        return replace(step, run=run_wait)
    return step


def _threads_of(machine: Machine) -> NDArray[np.int64]:
    return np.flatnonzero(np.broadcast_to(machine.active_mask, (1, machine.threads))[0])


def _describe(steps: tuple[ProgramStep, ...], cta: int, hazard: Hazard, lanes: int) -> MemoryProblem:
    action = "writes" if hazard.is_store else "reads"
    other = None if hazard.other_step is None else site_of(steps[hazard.other_step])
    if hazard.check is Check.UNINITIALIZED:
        message = f"warp {hazard.warp} reads byte {hazard.address:,} of shared memory, which nothing has written"
        suggestion = "Store to the buffer first, or check the buffer index."
    else:
        action = f"warp {hazard.warp} {action} byte {hazard.address:,} of shared memory"
        if hazard.check is Check.UNAWAITED_COPY:
            message = f"{action} while an asynchronous copy of warp {hazard.other_warp} may still write it"
            suggestion = "Wait for the copy (cp.async.wait_group), then synchronize the CTA."
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

"""Simulates a whole launch: every CTA, in portions that fit a CPU cache."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.amdgcn.environment import AmdgcnEnvironment
from artifact_inspector.execution.interpreter.access_stream import AccessStream
from artifact_inspector.execution.interpreter.counters import StepCounters, StepLimitReached
from artifact_inspector.execution.interpreter.footprints import Footprints
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.launch_log import LaunchLog
from artifact_inspector.execution.interpreter.loops import LoopAccelerator
from artifact_inspector.execution.interpreter.machine import LaunchEnvironment, Machine, arrive_at_reconvergence
from artifact_inspector.execution.interpreter.observation import AccessObserver
from artifact_inspector.execution.interpreter.program import MALFORMED_OPERAND_ERRORS, ProgramStep, UndecidedPath
from artifact_inspector.execution.interpreter.reconvergence import reachable_steps
from artifact_inspector.execution.interpreter.tensor_maps import TensorDescriptor, parse_block
from artifact_inspector.execution.interpreter.values import InputNames
from artifact_inspector.execution.kernel_loader import FILL_FLAG, KernelParameter, LoadedKernel
from artifact_inspector.execution.launch import SCRATCH_TENSOR, KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.pointer_origin import find_unknown_pointers
from artifact_inspector.execution.sass.environment import SassEnvironment
from artifact_inspector.model.limits import CTAS

PORTION_LANES = 1 << 15
"""Lanes that are simulated together: their registers fit the L2 cache of a CPU."""
MOST_PORTION_LANES = 1 << 20
"""The same if nearly all registers are affine values, whose cost does not depend on the number of CTAs."""
_STEPS_PER_ARRAY = 16
"""Fewest steps per register that is not affine."""


@dataclass(frozen=True, slots=True)
class UnfinishedCtas:
    """Why some CTAs did not run to their end."""

    step: ProgramStep
    ctas: int
    reasons: tuple[str, ...]
    uncounted_steps: frozenset[int]
    """Indices of the steps that they may still have to run."""


@dataclass(frozen=True, slots=True)
class SimulatedLaunch:
    """The counters of a simulated launch."""

    loaded: LoadedKernel
    launch: KernelLaunch
    counters: StepCounters
    memory: GlobalMemory
    input_names: InputNames
    unfinished: tuple[UnfinishedCtas, ...]
    """Empty if every CTA ran to its end."""
    is_sampled: bool
    """Whether only some CTAs ran and represent the others."""
    stream: AccessStream | None = None
    """The order of accesses, if it was requested and the tensors may not fit in L2."""
    log: LaunchLog | None = None
    """If all CTAs ran at once."""

    @property
    def uncounted_steps(self) -> frozenset[int]:
        """Indices of the steps whose counters are too low, because CTAs did not run to their end."""
        return frozenset(step for end in self.unfinished for step in end.uncounted_steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the launch, and what its counters assume of compare-and-swap loops."""
        steps = [step for step in self.loaded.program.steps if step.assumes_swap]
        steps = [step for step in steps if self.counters.warps_executed[step.index]]
        lines = ", ".join(dict.fromkeys(step.source_place or f"line {step.line}" for step in steps))
        return (*self.launch.notes, *(_ASSUMED_SWAPS.format(lines),) * bool(steps))


_ASSUMED_SWAPS = (
    "Assumed: compare-and-swaps at {} never retry because of other waves. "
    "With retries, instructions, cache lines and FLOPs are higher."
)


def parameter_values(loaded: LoadedKernel, launch: KernelLaunch) -> tuple[tuple[str, Any], ...]:
    """Name and value of each parameter, in order; None if it was not given.

    Raises:
        UsageError: arguments are missing, or of another kind than the kernel was compiled for.
    """
    values: list[tuple[str, Any]] = []
    missing: list[str] = []
    for parameter in loaded.parameters:
        if not parameter.type:
            # scratch memory that Triton's launcher adds
            values.append((parameter.name, launch.tensors.get(parameter.name)))
        elif parameter.argument not in launch.arguments:
            missing.append(parameter.argument)
        else:
            argument = launch.arguments[parameter.argument]
            values.append((parameter.name, _parameter_value(parameter, argument)))
    if missing:
        given_names = ", ".join(launch.arguments) or "none"
        others = launch.arguments.keys() - {parameter.argument for parameter in loaded.parameters}
        near_names = {name: get_close_matches(name, others, 1) for name in dict.fromkeys(missing)}
        typos = "".join(f" Is {near[0]} meant to be {name}?" for name, near in near_names.items() if near)
        raise UsageError(
            f"Missing arguments of {loaded.artifact.display_name}: {', '.join(dict.fromkeys(missing))}.",
            f"Pass them with --arg NAME=VALUE or --launch. Given: {given_names}.{typos}"
            + (
                " Its files keep no argument names: pass arguments in order, without constants."
                if "arg0" in missing
                else ""
            ),
        )
    return tuple(values)


def _parameter_value(parameter: KernelParameter, argument: Any) -> Any:
    name, kind = parameter.argument, parameter.type
    if parameter.descriptor_part is not None:  # of a descriptor
        if not isinstance(argument, Tensor):
            raise UsageError(f"{name} is a tensor descriptor, but {argument!r} is not a tensor.", _TENSOR_FORM)
        if parameter.descriptor_part == FILL_FLAG:
            return 0
        extents = [*argument.shape, *argument.strides]
        if len(extents) <= parameter.descriptor_part:
            raise UsageError(f"{name} has too few dimensions ({len(argument.shape)}).", _TENSOR_FORM)
        return extents[parameter.descriptor_part]
    if kind.startswith(("*", "!tt")):
        if argument is not None and not isinstance(argument, (Tensor, int)):
            raise UsageError(f"{name} is a pointer ({kind}), but {argument!r} is not.", _TENSOR_FORM)
        if isinstance(argument, Tensor):
            _check_type(parameter, argument)
        return argument if argument is not None else 0
    if isinstance(argument, Tensor):
        raise UsageError(f"{name} is a number ({kind}), but a tensor was given.", f"Write it as {name}=128.")
    if kind.startswith("i") and isinstance(argument, float):
        raise UsageError(f"{name} is an integer ({kind}), but {argument!r} is not.")
    if argument is not None and not -_WORD_RANGE < argument < _WORD_RANGE and not isinstance(argument, float):
        raise UsageError(f"The value of {name} ({kind}) does not fit 64 bits.")
    if argument is None:
        return 0
    return _float_argument(float(argument), kind) if kind.startswith(("f", "bf")) else int(argument)


def _float_argument(number: float, kind: str) -> float | int:
    """A number as a launcher passes it: 2-byte floats as their bits, as Triton 3.6 packs them."""
    if kind not in ("f16", "fp16", "bf16"):
        return number
    try:
        packed = struct.pack("<e", number) if kind != "bf16" else struct.pack("<f", number)[2:]
    except OverflowError:
        packed = struct.pack("<e" if kind != "bf16" else "<f", math.copysign(math.inf, number))[-2:]
    return int.from_bytes(packed, "little")


_WORD_RANGE = 1 << 64
_TENSOR_FORM = "Write a tensor as NAME=fp16[2048,2048]."


def _check_type(parameter: KernelParameter, tensor: Tensor) -> None:
    """Raise a UsageError if the pointer was compiled for elements of another size."""
    name, bits = parameter.argument, parameter.element_bits
    if bits not in (None, tensor.bits):
        element = parameter.type.removeprefix("*").removeprefix("k")
        raise UsageError(
            f"{name} is {parameter.type}, but a tensor of {tensor.dtype} was given.",
            f"Its elements have {bits} bits; write it as {name}={element}[…].",
        )


@dataclass(frozen=True, slots=True)
class LaunchSetup:
    """A launch that is ready to create machines."""

    loaded: LoadedKernel
    launch: KernelLaunch
    """With an address for every tensor."""
    counters: StepCounters
    memory: GlobalMemory
    input_names: InputNames
    environment: LaunchEnvironment
    runs_in_parallel: bool = True
    """Whether loop iterations may run in parallel and CTAs as affine values; the counters are the same."""
    log: LaunchLog | None = None

    def machine(self, ctas: NDArray[np.int64]) -> Machine:
        """A machine with some CTAs at the kernel's first instruction."""
        loaded, program = self.loaded, self.loaded.program
        machine = Machine(
            program if self.memory.computes_data else program.counting or program, ctas, loaded.threads,
            self.memory, self.counters, self.input_names, self.environment,
            LoopAccelerator() if self.runs_in_parallel else None,
        )  # fmt: skip
        machine.log, machine.trace = self.log, None if self.log is None else []
        if not self.runs_in_parallel:
            machine.uses_affine = False
        self.environment.initialize(machine)
        return machine


def set_up_launch(
    loaded: LoadedKernel, launch: KernelLaunch, counters: StepCounters, *, runs_in_parallel: bool = True
) -> LaunchSetup:
    """A launch before its first step.

    Args:
        runs_in_parallel: whether loop iterations may run in parallel.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    if min(launch.grid) < 1:
        extents = "×".join(str(extent) for extent in launch.grid)
        raise UsageError(f"The grid {extents} is empty.", "Each dimension must be at least 1.")
    launch = replace(launch, cluster_size=loaded.cluster_size)
    if loaded.scratch_bytes:  # as Triton's launcher adds it
        scratch = Tensor((loaded.scratch_bytes * launch.ctas,), "uint8")
        launch = replace(launch, arguments={**launch.arguments, SCRATCH_TENSOR: scratch})
    launch = place_tensors(launch)
    names = InputNames()
    arguments = parameter_values(loaded, launch)
    descriptors = {
        layout[0]: TensorDescriptor(parameter.name, argument, parse_block(parameter.type))
        for layout, parameter, (_, argument) in zip(
            loaded.program.parameters, loaded.parameters, arguments, strict=False
        )
        if parameter.type.startswith("!tt") and isinstance(argument, Tensor)
    }
    program, threads = loaded.program, loaded.threads
    environment: LaunchEnvironment
    if loaded.initial_state is not None:
        environment = AmdgcnEnvironment(program, loaded.initial_state, launch, arguments, threads, names)
    else:
        environment = SassEnvironment(program, launch, arguments, threads, names, descriptors)
    return LaunchSetup(loaded, launch, counters, _make_memory(launch), names, environment, runs_in_parallel)


def _make_memory(launch: KernelLaunch) -> GlobalMemory:
    """The memory of a launch, which tracks the touched elements of each tensor.

    Raises:
        UsageError: the tensors are too large.
    """
    try:
        return GlobalMemory(launch)
    except MemoryError:
        size = sum(tensor.bytes for tensor in launch.tensors.values())
        raise UsageError(
            f"The tensors span {size:.3g} bytes, which is too much to track in available memory.",
            "Use smaller tensors.",
        ) from None


def simulate_launch(
    loaded: LoadedKernel,
    launch: KernelLaunch,
    *,
    limit: int = 50_000_000,
    ctas: NDArray[np.int64] | None = None,
    footprints: bool = False,
    l2_bytes: int | None = None,
    runs_in_parallel: bool = True,
    observer: AccessObserver | None = None,
    counts_requests: bool = True,
) -> SimulatedLaunch:
    """Simulate a launch.

    Args:
        ctas: linear numbers of the CTAs to run; all by default.
        footprints: whether to record what each CTA reads.
        l2_bytes: size of the L2, to record in addition the order of accesses to tensors that do not fit in it.
        runs_in_parallel: whether loop iterations may run in parallel and CTAs as affine values; the counters are
            the same.
        observer: receives every access to memory.
        counts_requests: whether sectors and wavefronts are counted; else only what is touched is known.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    if ctas is None and launch.ctas > CTAS.value:
        raise UsageError(
            f"The launch has {launch.ctas} CTAs; at most {CTAS.value} are simulated.",
            f"Use a smaller grid, or set {CTAS.variable}.",
        )
    counters = StepCounters(len(loaded.program.steps), limit, counts_requests)
    setup = set_up_launch(loaded, launch, counters, runs_in_parallel=runs_in_parallel)
    memory = setup.memory
    memory.observer = observer
    selected_ctas = np.arange(setup.launch.ctas, dtype=np.int64) if ctas is None else ctas
    stream = None
    if footprints:
        size = sum(tensor.bytes for tensor in setup.launch.tensors.values())
        if l2_bytes and size > l2_bytes // 2 and loaded.initial_state is None:  # the L2 model is NVIDIA's
            stream = AccessStream(setup.launch, l2_bytes)
        if len(selected_ctas) * loaded.threads < 2 * PORTION_LANES and loaded.initial_state is None:
            setup = replace(setup, log=LaunchLog(counters, is_exact=False))
        memory.footprints = Footprints(
            setup.launch, *(recorder for recorder in (stream, setup.log) if recorder is not None)
        )
    unfinished = tuple(run_in_portions(setup, selected_ctas))
    reclassify_unknown_pointers(setup)
    return SimulatedLaunch(
        loaded, setup.launch, counters, memory, setup.input_names, unfinished, ctas is not None, stream, log=setup.log
    )


def run_in_portions(setup: LaunchSetup, ctas: NDArray[np.int64]) -> list[UnfinishedCtas]:
    """Run CTAs in portions, by their linear numbers; returns what did not end, and why."""
    counters, memory, threads = setup.counters, setup.memory, setup.loaded.threads
    unfinished: list[UnfinishedCtas] = []
    portion_size = max(1, PORTION_LANES // threads)
    if len(ctas) < 2 * portion_size:  # a few CTAs alone would take as long again
        portion_size = len(ctas)
    first = 0
    while first < len(ctas):
        portion_ctas = ctas[first : first + portion_size]
        first += len(portion_ctas)
        arrays_before, steps_before = counters.arrays, counters.spent
        unfinished += run_machines(setup.machine(portion_ctas))
        if memory.footprints is not None:
            memory.footprints.end_portion()
        is_mostly_affine = (counters.arrays - arrays_before) * _STEPS_PER_ARRAY < counters.spent - steps_before
        most_lanes = MOST_PORTION_LANES if setup.runs_in_parallel and is_mostly_affine else 0
        portion_size = max(PORTION_LANES, most_lanes) // threads or 1
        if unfinished and isinstance(unfinished[-1].step, ProgramStep) and counters.spent > counters.step_limit:
            break
        budget = counters.budget
        if budget is not None and first < len(ctas) and budget.is_spent():
            remaining, steps = len(ctas) - first, setup.loaded.program.steps
            unfinished.append(UnfinishedCtas(steps[0], remaining, (budget.reason,), frozenset(range(len(steps)))))
            break
    return unfinished


def reclassify_unknown_pointers(setup: LaunchSetup) -> None:
    """Reclassify out-of-bounds accesses that use pointers of unknown origin."""

    def simulate_again(launch: KernelLaunch, ctas: NDArray[np.int64]) -> StepCounters:
        new_counters = StepCounters(len(loaded.program.steps), setup.counters.step_limit)
        run_machines(set_up_launch(loaded, launch, new_counters, runs_in_parallel=setup.runs_in_parallel).machine(ctas))
        return new_counters

    loaded, counters = setup.loaded, setup.counters
    origins = find_unknown_pointers(counters, setup.memory, setup.launch, loaded.parameters, simulate_again)
    for index, memory in origins.items():
        counters.reclassify_out_of_bounds(index, setup.input_names.bit_of(memory))


def run_machines(machine: Machine) -> list[UnfinishedCtas]:
    """Run a machine and all that diverge from it; returns what did not end, and why."""
    pending = machine.pending = [machine]
    unfinished: list[UnfinishedCtas] = []
    while pending:
        current = pending.pop()
        has_reconverged = False
        try:
            has_reconverged = current.run()
        except UndecidedPath as stop:
            unfinished.append(UnfinishedCtas(stop.step, current.rows, stop.reasons, _later_steps(current, stop.step)))
        except StepLimitReached as stop:
            every_step = frozenset(range(len(current.program.steps)))
            unfinished.append(UnfinishedCtas(stop.step, current.rows, (stop.reason,), every_step))
            break
        except MALFORMED_OPERAND_ERRORS:
            later = _later_steps(current, current.step)
            unfinished.append(UnfinishedCtas(current.step, current.rows, ("invalid operands",), later))
        if current.log is not None:
            current.trace = current.log.close(current.ctas, current.trace or [])
        pending += arrive_at_reconvergence(current, has_reconverged=has_reconverged)
    return unfinished


def _later_steps(machine: Machine, step: ProgramStep) -> frozenset[int]:
    """The steps that a machine may still run, which stopped at one; all if the successors of blocks are unknown."""
    if not machine.program.blocks:
        return frozenset(range(len(machine.program.steps)))
    counters = (group.pc for group in (*machine.groups, *machine.waiting))
    return reachable_steps(machine.program.blocks, {step.index, *counters})

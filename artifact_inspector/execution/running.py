"""Simulates a whole launch: every CTA, in portions that fit a CPU cache."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.counters import Counts, Spent
from artifact_inspector.execution.interpreter.footprints import Footprints
from artifact_inspector.execution.interpreter.joining import arrive
from artifact_inspector.execution.interpreter.lanes import Names
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.memory import Memory
from artifact_inspector.execution.interpreter.program import ODD_OPERANDS, Step, Undecided
from artifact_inspector.execution.interpreter.tensor_maps import Descriptor, parse_block
from artifact_inspector.execution.interpreter.trips import Loops
from artifact_inspector.execution.launch import SCRATCH, Launch, Tensor, place
from artifact_inspector.execution.loading import FLAG, Loaded, Parameter
from artifact_inspector.execution.provenance import find_strangers
from artifact_inspector.execution.sass import semantics as sass
from artifact_inspector.model.limits import CTAS

if TYPE_CHECKING:
    from artifact_inspector.execution.amdgcn import semantics as amdgcn

PORTION = 1 << 15
"""Lanes that are simulated together: their registers fit the L2 cache of a CPU."""
MOST_PORTION = 1 << 20
"""The same if nearly all registers are affine values, whose cost does not depend on the number of CTAs."""
_FEW_ARRAYS = 16
"""Fewest steps per register that is not affine."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Why some CTAs did not run to their end."""

    step: Step
    ctas: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The counters of a simulated launch."""

    loaded: Loaded
    launch: Launch
    counts: Counts
    memory: Memory
    names: Names
    ended: tuple[Ended, ...]
    """Empty if every CTA ran to its end."""
    sampled: bool
    """Whether only some CTAs ran and represent the others."""


def arguments_of(loaded: Loaded, launch: Launch) -> tuple[tuple[str, Any], ...]:
    """Name and value of each parameter, in order; None if it was not given.

    Raises:
        UsageError: arguments are missing, or of another kind than the kernel was compiled for.
    """
    found: list[tuple[str, Any]] = []
    missing: list[str] = []
    for parameter in loaded.parameters:
        if not parameter.type:
            # scratch memory that Triton's launcher adds
            found.append((parameter.name, launch.tensors.get(parameter.name)))
        elif parameter.argument not in launch.arguments:
            missing.append(parameter.argument)
        else:
            given = launch.arguments[parameter.argument]
            found.append((parameter.name, _value(parameter, given)))
    if missing:
        known = ", ".join(launch.arguments) or "none"
        raise UsageError(
            f"Missing arguments of {loaded.artifact.display_name}: {', '.join(dict.fromkeys(missing))}.",
            f"Pass them with --arg NAME=VALUE or --launch. Given: {known}."
            + (
                " Its files keep no argument names: pass arguments in order, without constants."
                if "arg0" in missing
                else ""
            ),
        )
    return tuple(found)


def _value(parameter: Parameter, given: Any) -> Any:
    name, kind = parameter.argument, parameter.type
    if parameter.part is not None:  # of a descriptor
        if not isinstance(given, Tensor):
            raise UsageError(f"{name} is a tensor descriptor, but {given!r} is not a tensor.", _TENSOR)
        if parameter.part == FLAG:
            return 0
        extents = [*given.shape, *given.strides]
        if len(extents) <= parameter.part:
            raise UsageError(f"{name} has too few dimensions ({len(given.shape)}).", _TENSOR)
        return extents[parameter.part]
    if kind.startswith(("*", "!tt")):
        if given is not None and not isinstance(given, (Tensor, int)):
            raise UsageError(f"{name} is a pointer ({kind}), but {given!r} is not.", _TENSOR)
        if isinstance(given, Tensor):
            _check_type(parameter, given)
        return given if given is not None else 0
    if isinstance(given, Tensor):
        raise UsageError(f"{name} is a number ({kind}), but a tensor was given.", f"Write it as {name}=128.")
    if kind.startswith("i") and isinstance(given, float):
        raise UsageError(f"{name} is an integer ({kind}), but {given!r} is not.")
    if given is not None and not -_WORD < given < _WORD and not isinstance(given, float):
        raise UsageError(f"The value of {name} ({kind}) does not fit 64 bits.")
    if given is None:
        return 0
    return _bits_of(float(given), kind) if kind.startswith(("f", "bf")) else int(given)


def _bits_of(given: float, kind: str) -> float | int:
    """A number as a launcher passes it: 2-byte floats as their bits, as Triton 3.6 packs them."""
    if kind not in ("f16", "fp16", "bf16"):
        return given
    try:
        packed = struct.pack("<e", given) if kind != "bf16" else struct.pack("<f", given)[2:]
    except OverflowError:
        packed = struct.pack("<e" if kind != "bf16" else "<f", math.copysign(math.inf, given))[-2:]
    return int.from_bytes(packed, "little")


_WORD = 1 << 64
_TENSOR = "Write a tensor as NAME=fp16[2048,2048]."


def _check_type(parameter: Parameter, given: Tensor) -> None:
    """Raise a UsageError if the pointer was compiled for elements of another size."""
    name, bits = parameter.argument, parameter.element_bits
    if bits not in (None, given.bits):
        element = parameter.type.removeprefix("*").removeprefix("k")
        raise UsageError(
            f"{name} is {parameter.type}, but a tensor of {given.dtype} was given.",
            f"Its elements have {bits} bits; write it as {name}={element}[…].",
        )


@dataclass(frozen=True, slots=True)
class Started:
    """A launch that is ready to create machines."""

    loaded: Loaded
    launch: Launch
    """With an address for every tensor."""
    counts: Counts
    memory: Memory
    names: Names
    environment: amdgcn.Environment | sass.Environment
    side_by_side: bool = True
    """Whether loop iterations may run in parallel and CTAs as affine values; the counters are the same."""

    def machine(self, ctas: NDArray[np.int64]) -> Machine:
        """A machine with some CTAs at the kernel's first instruction."""
        loaded = self.loaded
        machine = Machine(
            loaded.program,
            ctas,
            loaded.threads,
            self.memory,
            self.counts,
            self.names,
            self.environment,
            Loops() if self.side_by_side else None,
        )
        if not self.side_by_side:
            machine.sums = False
        self.environment.begin(machine)
        return machine


def begin(loaded: Loaded, launch: Launch, counts: Counts, *, side_by_side: bool = True) -> Started:
    """A launch before its first step.

    Args:
        loaded: the kernel.
        launch: its grid and arguments.
        counts: receives the counters.
        side_by_side: whether loop iterations may run in parallel.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    if min(launch.grid) < 1:
        extents = "×".join(str(extent) for extent in launch.grid)
        raise UsageError(f"The grid {extents} is empty.", "Each dimension must be at least 1.")
    launch = place(_with_memory(loaded, launch))
    names = Names()
    arguments = arguments_of(loaded, launch)
    descriptors = {
        place[0]: Descriptor(parameter.name, given, parse_block(parameter.type))
        for place, parameter, (_, given) in zip(
            loaded.program.parameters, loaded.parameters, arguments, strict=False
        )
        if parameter.type.startswith("!tt") and isinstance(given, Tensor)
    }
    program, threads = loaded.program, loaded.threads
    environment: amdgcn.Environment | sass.Environment
    if loaded.beginning is not None:
        from artifact_inspector.execution.amdgcn import semantics as amdgcn

        environment = amdgcn.Environment(program, loaded.beginning, launch, arguments, threads, names)
    else:
        environment = sass.Environment(program, launch, arguments, threads, names, descriptors)
    return Started(loaded, launch, counts, _memory(launch), names, environment, side_by_side)


def _memory(launch: Launch) -> Memory:
    """The memory of a launch, which tracks the touched elements of each tensor.

    Raises:
        UsageError: the tensors are too large.
    """
    try:
        return Memory(launch)
    except MemoryError:
        size = sum(tensor.bytes for tensor in launch.tensors.values())
        raise UsageError(
            f"The tensors span {size:.3g} bytes, which is too much to track in available memory.",
            "Use smaller tensors.",
        ) from None


def _with_memory(loaded: Loaded, launch: Launch) -> Launch:
    """The launch as Triton makes it: with clusters, and with scratch memory."""
    launch = replace(launch, cluster=loaded.cluster)
    if not loaded.scratch:
        return launch
    added = Tensor((loaded.scratch * launch.ctas,), "uint8")
    return replace(launch, arguments={**launch.arguments, SCRATCH: added})


def run_launch(
    loaded: Loaded,
    launch: Launch,
    *,
    limit: int = 50_000_000,
    ctas: NDArray[np.int64] | None = None,
    portion: int = PORTION,
    footprints: bool = False,
    side_by_side: bool = True,
) -> Run:
    """Simulate a launch.

    Args:
        loaded: the kernel.
        launch: its grid and arguments.
        limit: steps after which it counts as endless.
        ctas: linear numbers of the CTAs to run; all by default.
        portion: lanes that are simulated together.
        footprints: whether to record what each CTA reads.
        side_by_side: whether loop iterations may run in parallel and CTAs as affine values; the counters are
            the same.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
    """
    if launch.ctas > CTAS.most:
        raise UsageError(
            f"The launch has {launch.ctas} CTAs; at most {CTAS.most} are simulated.",
            f"Use a smaller grid, or set {CTAS.switch}.",
        )
    counts = Counts(len(loaded.program.steps), limit)
    started = begin(loaded, launch, counts, side_by_side=side_by_side)
    memory = started.memory
    wanted = np.arange(started.launch.ctas, dtype=np.int64) if ctas is None else ctas
    ended: list[Ended] = []
    size = max(1, portion // loaded.threads)
    if len(wanted) < 2 * size:  # a few CTAs alone would take as long again
        size = len(wanted)
    if footprints:
        memory.footprints = Footprints(started.launch)
    first = 0
    while first < len(wanted):
        together = wanted[first : first + size]
        first += len(together)
        arrays, spent = counts.arrays, counts.spent
        if memory.footprints is not None:
            memory.footprints.begin(int(together[0]))
        ended += run_all(started.machine(together))
        if memory.footprints is not None:
            memory.footprints.end(together)
        few = (counts.arrays - arrays) * _FEW_ARRAYS < counts.spent - spent
        size = max(1, portion, MOST_PORTION if side_by_side and few else 0) // loaded.threads or 1
        if ended and isinstance(ended[-1].step, Step) and counts.spent > limit:
            break
    excuse_strangers(started)
    return Run(loaded, started.launch, counts, memory, started.names, tuple(ended), ctas is not None)


def excuse_strangers(started: Started) -> None:
    """Reclassify out-of-bounds accesses that use pointers of unknown origin."""

    def again(launch: Launch, ctas: NDArray[np.int64]) -> Counts:
        counts = Counts(len(loaded.program.steps), started.counts.limit)
        run_all(begin(loaded, launch, counts, side_by_side=started.side_by_side).machine(ctas))
        return counts

    loaded, counts = started.loaded, started.counts
    found = find_strangers(counts, started.memory, started.launch, loaded.parameters, again)
    for index, memory in found.items():
        counts.excuse(index, started.names.bit(memory))


def run_all(machine: Machine) -> list[Ended]:
    """Run a machine and all that diverge from it; returns what did not end, and why."""
    pending = machine.pending = [machine]
    ended: list[Ended] = []
    while pending:
        current = pending.pop()
        came = False
        try:
            came = current.run()
        except Undecided as stop:
            ended.append(Ended(stop.step, current.rows, stop.reasons))
        except Spent as stop:
            reason = f"no end after {stop.limit} steps"
            ended.append(Ended(stop.step, current.rows, (reason,)))
            break
        except ODD_OPERANDS:
            ended.append(Ended(current.step, current.rows, ("invalid operands",)))
        pending += arrive(current, came=came)
    return ended

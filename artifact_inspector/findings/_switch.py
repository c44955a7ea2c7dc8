"""Changes of a compile that leave the source as it is: options, and properties of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.hardware.gpu import MAX_THREADS_PER_BLOCK
from artifact_inspector.model import Backend

VECTOR = 16
"""The divisor of an argument that allows the widest accesses."""


class SwitchKind(Enum):
    """What a switch changes."""

    OPTION = "option"
    """Of the compile: `num_stages`, `maxnreg` …"""
    DIVISIBLE = "divisible"
    """Of an argument: the value divides it."""
    PRECISION = "precision"
    """Of the dots of 32-bit floats."""


class Switch(NamedTuple):
    """One change of a compile."""

    kind: SwitchKind
    name: str
    """Of the option; of the argument, or of several with commas between."""
    value: int | str

    @property
    def description(self) -> str:
        """`num_stages=4`, `n divisible by 16`."""
        if self.kind is SwitchKind.DIVISIBLE:
            return f"{self.name} divisible by {self.value}"
        return f"{self.name}={self.value}"


def more_warps(kernel: KernelFacts) -> Iterator[Switch]:
    """Twice the warps, if a block may have them."""
    warps, target = kernel.artifact.num_warps, kernel.artifact.target
    if warps is not None and target is not None and 2 * warps * target.warp_size <= MAX_THREADS_PER_BLOCK:
        yield Switch(SwitchKind.OPTION, "num_warps", 2 * warps)


def deeper(kernel: KernelFacts) -> Iterator[Switch]:
    """One stage more."""
    if kernel.artifact.num_stages is not None:
        yield Switch(SwitchKind.OPTION, "num_stages", kernel.artifact.num_stages + 1)


def shallower(kernel: KernelFacts) -> Iterator[Switch]:
    """One stage fewer."""
    stages = kernel.artifact.num_stages
    if stages is not None and stages > 1:
        yield Switch(SwitchKind.OPTION, "num_stages", stages - 1)


def fewer_registers(kernel: KernelFacts, limit: int) -> Iterator[Switch]:
    """A bound on registers, as each vendor's compiler takes it."""
    target, occupancy = kernel.artifact.target, kernel.occupancy
    if target is not None and target.backend is Backend.CUDA:
        yield Switch(SwitchKind.OPTION, "maxnreg", limit)
    elif occupancy is not None and occupancy.blocks and kernel.artifact.num_warps:
        # waves of a SIMD, four of which make a compute unit
        waves = (occupancy.blocks + 1) * kernel.artifact.num_warps // 4
        if waves:
            yield Switch(SwitchKind.OPTION, "waves_per_eu", waves)


def divisible(accesses: Iterable[LoadWidth]) -> Iterator[Switch]:
    """Arguments whose known divisibility would allow wider accesses."""
    promised = [access.causes for access in accesses if all(cause.is_promise for cause in access.causes)]
    names = dict.fromkeys(cause.name for causes in promised for cause in causes)
    if names:
        yield Switch(SwitchKind.DIVISIBLE, ", ".join(names), VECTOR)

"""Changes of a compile that leave the source as it is: options, and properties of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.records import MANIFEST
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
    PADDING = "padding"
    """Of the program's tensors: an argument of a recorded launch is not divisible. Nothing to compile."""


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
        if self.kind is SwitchKind.PADDING:
            return f"pad rows to a multiple of {VECTOR} elements ({self.name}={self.value} in a recorded launch)"
        return f"{self.name}={self.value}"


def more_warps(kernel: KernelFacts) -> Iterator[Switch]:
    """Twice the warps, if a block may have them."""
    warps, target = kernel.artifact.num_warps, kernel.artifact.target
    if warps is not None and target is not None and 2 * warps * target.warp_size <= MAX_THREADS_PER_BLOCK:
        yield Switch(SwitchKind.OPTION, "num_warps", 2 * warps)


def deeper(kernel: KernelFacts, most: int = 1) -> Iterator[Switch]:
    """One stage more, or each number up to `most` more."""
    stages = kernel.num_stages
    if stages is not None:
        yield from (Switch(SwitchKind.OPTION, "num_stages", stages + more) for more in range(1, most + 1))


def shallower(kernel: KernelFacts) -> Iterator[Switch]:
    """One stage fewer."""
    stages = kernel.num_stages
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


def divisible(kernel: KernelFacts, accesses: Iterable[LoadWidth]) -> Iterator[Switch]:
    """Arguments whose known divisibility would allow wider accesses; padding where a recorded launch rules it out."""
    promised = [access.causes for access in accesses if all(cause.is_promise for cause in access.causes)]
    names = dict.fromkeys(cause.name for causes in promised for cause in causes)
    values = _indivisible_values(kernel.artifact) if names else {}
    if divisible_names := [name for name in names if name not in values]:
        yield Switch(SwitchKind.DIVISIBLE, ", ".join(divisible_names), VECTOR)
    yield from (Switch(SwitchKind.PADDING, name, values[name]) for name in names if name in values)


def _indivisible_values(artifact: Artifact) -> dict[str, int]:
    """Integers of launches on record that are not divisible, by argument."""
    path = next(iter(artifact.files.values()), None)
    if not isinstance(path, Path):
        return {}
    root = path.parent.parent
    try:
        manifest = (root / MANIFEST).stat()
    except OSError:
        return {}
    return _indivisible_values_by_hash(root, manifest.st_mtime_ns, manifest.st_size).get(artifact.hash, {})


@lru_cache(maxsize=4)
def _indivisible_values_by_hash(root: Path, _modified: int, _size: int) -> dict[str, dict[str, int]]:
    """The same by kernel hash: the record is read once for all kernels of a directory."""
    from artifact_inspector.compiling.ask.manifest import read_launches  # a list needs no launches: 3 ms

    values: dict[str, dict[str, int]] = {}
    for row in read_launches(root):
        arguments = row.get("args")
        if isinstance(arguments, dict):
            indivisible = {name: value for name, value in arguments.items() if type(value) is int and value % VECTOR}
            values.setdefault(str(row.get("hash")), {}).update(indivisible)
    return values

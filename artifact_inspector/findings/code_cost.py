"""What the code of a kernel shows to cost most, without a launch: the busiest unit of its main loop, and the line.

Three lower bounds for one pass of a CTA, in cycles of a multiprocessor: the matrix unit at its peak, the issue of all
instructions, and the bytes of its loads and stores if device memory serves them. A launch waits longer, and caches
serve loads: `advise` predicts both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.region import RegionWork
from artifact_inspector.findings._rule import describe_region, find_dots
from artifact_inspector.hardware.gpu import Product, Rates
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.hardware.products import RATE_NAMES, matrix_rate
from artifact_inspector.model import EventKind, RegionKind, Stage

_LEAST_LINE_SHARE = 0.25
"""Share of the instructions from which on one line stands out."""
_CLEARLY = 1.5
"""Factor from which on one estimate exceeds another for certain enough."""
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class CodeCost:
    """The sentence about the code, and the lines that it is about."""

    description: str
    sources: tuple[str, ...]
    stage: Stage | None = None
    lines: tuple[int, ...] = ()


def find_code_cost(kernel: KernelFacts) -> CodeCost | None:
    """What a pass through the main loop costs; None without machine code, or if the loop is in several partitions."""
    last, name = kernel.last, kernel.principal
    region = None if last is None or name is None else last.region(name)
    if last is None or region is None or last.stage.order <= Stage.TTGIR.order or kernel.partitions:
        return None
    work = last.work.get(region.id)
    line = None if work is None else work.costliest_line
    if work is None or line is None:
        return None
    source, most, total = line.source, line.instructions, line.total
    of_kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in line.kinds)
    executed = total if work.issue is None else work.issue.instructions  # also those without a line
    bounds = _bounds_of(kernel, region, work, executed)
    others = max(bounds.issue or 0, bounds.tensor or 0)
    stage: Stage | None = None
    lines: tuple[int, ...] = ()
    sources: tuple[str, ...] = (source,)
    if bounds.tensor and bounds.issue and bounds.tensor > bounds.issue:
        stage, lines, sources = find_dots(kernel, region.id)
        subject = f"the dot at {_join(sources)}" if sources else "its dots"
    elif bounds.memory and others and bounds.memory > _CLEARLY * others and not work.matrix:
        sources = _accessing(kernel, region)
        subject = f"the loads and stores at {_join(sources)}" if sources else "its loads and stores"
    elif most < _LEAST_LINE_SHARE * total:
        subject = f"no line stands out, the largest, {source}, has {most / total:.0%} of the instructions ({of_kinds})"
    else:
        subject = f"{source} has {most / total:.0%} of the instructions ({of_kinds})"
    text = f"{describe_region(region.id)}: {subject}{bounds.describe(executed, region, last.stage)}"
    return CodeCost(text, sources, stage, lines)


def _join(sources: Sequence[str]) -> str:
    more = len(sources) - _MOST_LINES
    return ", ".join(sources[:_MOST_LINES]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Cycles of a multiprocessor for a pass of the last stage's code; None if unknown."""

    issue: float | None = None
    tensor: float | None = None
    memory: float | None = None
    bytes: int = 0
    """Bytes that an iteration of the program loads and stores."""

    def describe(self, instructions: int, region: RegionFacts, stage: Stage) -> str:
        """The known bounds of one iteration of the program, as a sentence; empty without any."""
        if self.issue is None:
            return ""
        passes, is_loop = max(1, region.unroll_factor), region.kind is RegionKind.LOOP
        per = " and iteration" if is_loop else ""
        parts = [f"{self.tensor / passes:.0f} of the matrix unit"] if self.tensor else []
        language = "PTX instructions" if stage is Stage.PTX else "instructions"
        parts += [f"{self.issue / passes:.0f} to issue {instructions / passes:.0f} {language} of each warp"]
        if self.memory:
            parts += [f"{self.memory / passes:.0f} for {self.bytes} B of device memory, if no cache serves them"]
        return f". Cycles per CTA{per}, about: {', '.join(parts)}"


def _bounds_of(kernel: KernelFacts, region: RegionFacts, work: RegionWork, instructions: int) -> _Bounds:
    target, warps = kernel.artifact.target, kernel.artifact.num_warps
    gpu = None if target is None else target.gpu
    if gpu is None or gpu.rates is None or warps is None or gpu.product is None:
        return _Bounds()
    size = _moved_bytes(kernel, region)
    rate = _bytes_per_cycle(gpu.product)
    memory = None if size is None or rate is None else size / rate * max(1, region.unroll_factor)
    tensor = _matrix_cycles(work.matrix, gpu.rates, gpu.product)
    return _Bounds(instructions * warps / gpu.rates.issue, tensor, memory, size or 0)


def _matrix_cycles(works: Iterable[MatrixWork], rates: Rates, product: Product) -> float | None:
    """Cycles of the matrix unit at its peak rate; None if the work or a rate is unknown."""
    cycles = 0.0
    for work in works:
        if work.flop is None or work.matrix is None:
            return None
        operand = work.matrix.operands[0]
        rate = matrix_rate(rates, product.name, RATE_NAMES.get(operand, operand), work.matrix.accumulator)
        if rate is None:
            return None
        cycles += work.flop / 2 / rate
    return cycles


def _bytes_per_cycle(product: Product) -> float | None:
    """Bytes of device memory for each multiprocessor and cycle."""
    peaks = find_peaks(product.name)
    if peaks is None or product.megahertz is None:
        return None
    return peaks.bandwidth / (product.megahertz * 1e6 * product.multiprocessors)


def _moved_bytes(kernel: KernelFacts, region: RegionFacts) -> int | None:
    """Bytes of the tiles that the program loads and stores in a pass; None if a size is unknown, or CTAs share them."""
    blocks = kernel.artifact.metadata.get("num_ctas")
    if isinstance(blocks, int) and blocks > 1:
        return None
    for stage in (Stage.TTIR, Stage.TTGIR):
        facts = kernel.stages.get(stage)
        work = None if facts is None else facts.work.get(region.id)
        if work is not None:
            tiles = [*work.accesses.tiles.items(), *work.accesses.tile_stores.items()]
            return None if any(size is None for size, _ in tiles) else sum((size or 0) * n for size, n in tiles)
    return None


def _accessing(kernel: KernelFacts, region: RegionFacts) -> tuple[str, ...]:
    """The lines of the region's loads, then of the kernel's stores."""
    loads = [source for located_round in region.rounds for source in located_round.sources]
    stores = [access.source for access in kernel.store_widths if access.source is not None]
    return tuple(dict.fromkeys([*loads, *(stores if region.count(EventKind.GLOBAL_STORE) else ())]))

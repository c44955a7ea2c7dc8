"""A kernel's facts as flat rows that two kernels can be compared by, with names that do not shift.

The rows are the shared vocabulary of both vendors: each bears its unit, loops go by their order in the
program instead of their line, PTX and AMDGCN are both `assembly`. A row that does not apply is absent; a
value that is not known is None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from artifact_inspector.analysis.access.bounds_checks import Check
from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts, WaitFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.model import EventKind, Stage

__all__ = [
    "CATEGORIES",
    "OPTIONS",
    "STEPS",
    "Row",
    "Summary",
    "Value",
    "name_regions",
    "step_of",
    "summarise",
    "verdict_words",
]

Value = bool | int | float | str | tuple[str, ...] | None
"""What a row says; a tuple is a set of words, in a fixed order."""

CATEGORIES = (
    "verdict",
    "spills",
    "waits",
    "mma",
    "shared",
    "registers",
    "occupancy",
    "loads",
    "stores",
    "in-flight",
    "bounds",
    "conversions",
    "barriers",
    "float",
    "findings",
    "instructions",
)
"""What rows are about, most telling first."""

STEPS = ("ttir", "ttgir", "llir", "assembly", "sass")
"""Compilation stages by one name for both vendors; `assembly` is PTX or AMDGCN."""

OPTIONS = (
    "num_warps",
    "num_ctas",
    "num_stages",
    "cluster_dims",
    "maxnreg",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
    "schedule_hint",
    "instruction_sched_variant",
    "num_buffers_warp_spec",
    "num_consumer_groups",
    "reg_dec_producer",
    "reg_inc_consumer",
    "enable_fp_fusion",
    "allow_flush_denorm",
    "enable_warp_specialization",
    "enable_persistent",
    "launch_pdl",
    "launch_cooperative_grid",
    "ptx_options",
    "ir_override",
    "instrumentation_mode",
    "debug",
)
"""Keys of the metadata that the one who compiles chooses, in any version of Triton."""

OF_REGISTERS = frozenset({"AI007", "AI008"})
"""Findings that nobody can make without the registers: spills, and occupancy that they limit."""

_PLACE = re.compile(r" at [^ ]*:\d+.*")
_LOOP = re.compile(r"loop[@#](\d+)")


class Row(NamedTuple):
    """One fact of a kernel."""

    key: str
    """What it is called wherever kernels are compared, as `loop1.verdict.ttgir`."""
    category: str
    """What it is about."""
    label: str
    """What it is, for people."""
    unit: str
    """`B per thread`, `per warp` …; empty for words and plain counts."""
    value: Value
    step: str
    """The stage that it was read from; empty for what no single text says."""
    region: str = ""
    """`loop1`, `straight`: by its order in the program; empty for the whole kernel."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One kernel: what it is, and what was found of it."""

    name: str
    target: str | None
    triton: str | None
    signature: tuple[str, ...] | None
    """Types of its arguments; None without tensor-level IR."""
    tiles: tuple[str, ...] | None
    options: Mapping[str, Value]
    """What was chosen when it was compiled, by the metadata."""
    steps: tuple[str, ...]
    """Stages that were read."""
    rows: tuple[Row, ...]
    """In the order of reports."""

    @property
    def facts(self) -> dict[str, Value]:
        """Key → value."""
        return {row.key: row.value for row in self.rows}


def summarise(kernel: KernelFacts, names: Mapping[str, str] | None = None) -> Summary:
    """The rows of one kernel.

    Args:
        names: of its regions; `name_regions` by default.

    Example:
        >>> summarise(kernel).facts["shared"]  # doctest: +SKIP
        30720
    """
    artifact, program = kernel.artifact, kernel.program
    return Summary(
        name=artifact.display_name,
        target=None if artifact.target is None else str(artifact.target),
        triton=artifact.triton_version,
        signature=None if program is None else program.signature,
        tiles=None if program is None else program.tiles,
        options=read_options(artifact.metadata),
        steps=tuple(step_of(stage) for stage in kernel.stages),
        rows=tuple(_rows(kernel, name_regions(kernel) if names is None else names)),
    )


def read_options(metadata: Mapping[str, object]) -> dict[str, Value]:
    """The options that a compile was asked for, by its metadata."""
    options: dict[str, Value] = {}
    for key in OPTIONS:
        value = metadata.get(key)
        if isinstance(value, list | tuple):
            options[key] = tuple(str(one) for one in value)
        elif isinstance(value, bool | int | float | str):
            options[key] = value
    return options


def step_of(stage: Stage) -> str:
    """The name of a stage that both vendors share."""
    return STEPS[stage.order]


def name_regions(kernel: KernelFacts) -> dict[str, str]:
    """Region id → a name that stays when lines shift: `loop1`, `loop2` by their place in the program.

    Loops that only the compiler made are left out.

    Example:
        >>> name_regions(kernel)  # doctest: +SKIP
        {'loop@81': 'loop1', 'straight': 'straight'}
    """
    ids = dict.fromkeys(
        region.id for facts in kernel.stages.values() for region in facts.regions if region.in_program
    )
    lines: dict[str, set[int]] = {}
    for name in ids:
        for found in _LOOP.finditer(name):
            lines.setdefault(name[: found.start()], set()).add(int(found[1]))
    numbers = {
        (function, line): number
        for function, own in lines.items()
        for number, line in enumerate(sorted(own), 1)
    }
    return {
        name: _LOOP.sub(lambda found: f"loop{numbers[found.string[: found.start()], int(found[1])]}", name)
        for name in ids
    }


def _rows(kernel: KernelFacts, names: Mapping[str, str]) -> Iterator[Row]:
    yield from _resources(kernel)
    last = kernel.last
    if last is not None:
        yield from _file(kernel, last)
    for stage, facts in kernel.stages.items():
        yield Row(
            f"instructions.{step_of(stage)}",
            "instructions",
            f"instructions at {step_of(stage)}",
            "in the code",
            facts.instructions,
            step_of(stage),
        )
    for region in sorted(names, key=lambda region: region != kernel.principal):
        yield from _region(kernel, region, names[region])
    codes = {finding.code for finding in find_findings(kernel)}
    yield Row("findings", "findings", "findings", "", tuple(sorted(codes - OF_REGISTERS)), "")
    known = kernel.resources.registers.value is not None
    told = tuple(sorted(codes & OF_REGISTERS)) if known else None
    yield Row("findings.resources", "findings", "findings on registers", "", told, "")


def _resources(kernel: KernelFacts) -> Iterator[Row]:
    taken, occupancy, artifact = kernel.resources, kernel.occupancy, kernel.artifact
    shared = artifact.shared_bytes if taken.shared.value is None else taken.shared.value
    yield Row("shared", "shared", "shared memory", "B per CTA", shared, "")
    bill: Counter[str] = Counter()
    known = True
    for entry in () if kernel.bill is None else kernel.bill.entries:
        known = known and entry.bytes is not None
        bill[_PLACE.sub("", entry.purpose)] += entry.bytes or 0
    for purpose, size in bill.items():
        yield Row(
            f"shared.{purpose}", "shared", f"  {purpose}", "B per CTA", size if known else None, "ttgir"
        )
    yield Row("registers", "registers", "registers", "per thread", taken.registers.value, "")
    if taken.accumulation_registers.value:
        count = taken.accumulation_registers.value
        yield Row("registers.accumulation", "registers", "  AccVGPRs of them", "per thread", count, "")
    yield Row("spills", "spills", "spilled", "B per thread", taken.spill_bytes.value, "")
    if occupancy is not None:
        warp = 32 if artifact.target is None else artifact.target.warp_size
        threads = None if occupancy.warps is None else occupancy.warps * warp
        yield Row("occupancy", "occupancy", "blocks that fit", "per SM or CU", occupancy.blocks, "")
        yield Row("occupancy.threads", "occupancy", "threads that fit", "per SM or CU", threads, "")
        limits = tuple(occupancy.limited_by) if occupancy.blocks is not None else None
        yield Row("occupancy.limit", "occupancy", "limited by", "", limits, "")


def _file(kernel: KernelFacts, last: StageFacts) -> Iterator[Row]:
    """What the last text says as a whole."""
    step, found = step_of(last.stage), last.accesses
    threads = _threads(kernel)
    for key, category, label, unit, histogram in (
        ("loads", "loads", "loads", "B per thread", found.loads),
        ("copies", "loads", "copies to shared memory", "B per thread", found.copies),
        ("tiles", "loads", "copies of tiles", "B per CTA", found.tiles),
        ("stores", "stores", "stores", "B per thread", found.stores),
        ("tile_stores", "stores", "stores of tiles", "B per CTA", found.tile_stores),
    ):
        if histogram:
            yield Row(f"{key}.widths", category, label, f"{unit} × count", _widths(histogram), step)
    reads = _bytes(threads, (found.loads, found.copies), found.tiles)
    yield Row("loads.bytes", "loads", "global reads, each once", "B per CTA", reads, step)
    writes = _bytes(threads, (found.stores,), found.tile_stores)
    yield Row("stores.bytes", "stores", "global writes, each once", "B per CTA", writes, step)
    for kind, category, label in (
        (EventKind.BARRIER, "barriers", "barriers"),
        (EventKind.FLOAT, "float", "float operations"),
        (EventKind.MATRIX, "mma", "matrix instructions"),
        (EventKind.SHARED_LOAD, "instructions", "shared loads"),
        (EventKind.SHARED_STORE, "instructions", "shared stores"),
        (EventKind.ATOMIC, "instructions", "atomics"),
    ):
        count = last.counts[kind.count_name]
        yield Row(f"count.{kind.count_name}", category, label, "in the code", count, step)
    tensor = kernel.stages.get(Stage.TTGIR)
    if tensor is not None:
        count = tensor.counts[EventKind.LAYOUT_CONVERSION.count_name]
        yield Row("conversions", "conversions", "layout conversions", "in the code", count, "ttgir")
    # LLIR on the way to a stage that could not be read was not asked
    later = any(s.value in kernel.artifact.files for s in Stage if s.order > last.stage.order)
    told = last.stage is not Stage.LLIR or not later
    for check in Check:
        total = sum(work.checks.get(check, 0) for work in last.work.values()) if told else None
        yield Row(f"bounds.{check.value}", "bounds", _CHECKS[check], "in the code", total, step)


_CHECKS = {Check.COMPARE: "compares for masks", Check.DIVISION: "integer divisions"}


def _region(kernel: KernelFacts, region: str, name: str) -> Iterator[Row]:
    def row(key: str, category: str, label: str, unit: str, value: Value, step: str) -> Row:
        return Row(f"{name}.{key}", category, label, unit, value, step, name)

    facts: RegionFacts | None = None
    for stage, read in kernel.stages.items():
        found = read.region(region)
        if found is not None:
            facts = found
            step = step_of(stage)
            yield row(f"verdict.{step}", "verdict", f"verdict at {step}", "", verdict_words(found), step)
    last = kernel.last
    if last is None or facts is None:
        return
    step = step_of(last.stage)
    work = last.work.get(region)
    here = last.region(region)
    if work is not None and here is not None:
        yield from (row(*parts, step) for parts in _work(kernel, here, work))
    copies = Fraction(_events(facts, EventKind.ASYNC_COPY), facts.unrolled_by)
    if copies and facts.kind == "loop":
        yield row("copies", "loads", "copies to shared memory", "per iteration", _number(copies), step)
    pipeline = kernel.pipelines.get(region)
    if pipeline is not None and pipeline.kind is not None:
        for key, label, unit, value in (
            ("kind", "pipelined by", "", pipeline.kind),
            ("buffers", "buffers", "", pipeline.buffers),
            ("commits", "groups committed", "per iteration", pipeline.commits_per_iteration),
            ("depth", "wait depth", "left in flight", pipeline.wait_depth),
            ("iterations", "iterations in flight", "behind the wait", pipeline.iterations_in_flight),
        ):
            if value is not None:
                yield row(f"pipeline.{key}", "waits", label, unit, value, step)


def verdict_words(region: RegionFacts) -> str | None:
    """The verdict with its distance and groups, None where it is not known."""
    return None if region.verdict == "unknown" else region.phrase.partition(" ×")[0]


def _work(
    kernel: KernelFacts, region: RegionFacts, work: RegionWork
) -> Iterator[tuple[str, str, str, str, Value]]:
    """What a region of the last text does, as (key, category, label, unit, value)."""
    last = kernel.last
    assert last is not None
    waits = [w for w in last.waits if w.region == region.id and w.is_for_loads]
    if waits:
        yield "waits", "waits", "waits for loads", "", tuple(_waits(waits))
    elif work.in_flight.max_loads and not any(w.region == region.id for w in last.waits):
        yield "waits", "waits", "waits for loads", "", ("first use of the register",)
    is_left_over = region.kind == "straight" and not region.id.endswith("straight")
    matrix = () if is_left_over else work.matrix
    if matrix:
        copies = region.unrolled_by
        yield "mma", "mma", "matrix instructions", "per iteration × issuers", _matrix(matrix, copies)
        flop = [found.flop for found in matrix]
        total = None if None in flop else Fraction(sum(one or 0 for one in flop), copies)
        yield "mma.flop", "mma", "FLOP", "per CTA and iteration", None if total is None else _number(total)
    if region.fused and not matrix and any(_has_dot(facts, region.id) for facts in kernel.stages.values()):
        yield "mma.fused", "mma", "multiply-adds in place of MMAs", "in the code", region.fused
    flying = work.in_flight
    if flying.max_loads != 0:
        yield "in_flight.loads", "in-flight", "loads in flight, at most", "", flying.max_loads
        each, threads = flying.max_bytes_per_thread, _threads(kernel)
        size = None if each is None or threads is None else each * threads
        yield "in_flight.bytes", "in-flight", "bytes in flight, at most", "B per CTA", size
    if flying.compute_covered is not None and region.kind == "loop":
        covered = round(100 * flying.compute_covered)
        yield "in_flight.covered", "in-flight", "compute behind loads in flight", "%", covered


def _events(region: RegionFacts, kind: EventKind) -> int:
    """Events of a kind in a region's signature."""
    return sum(int(run[1:]) for run in region.signature.split() if run[0] == kind.letter)


def _has_dot(facts: StageFacts, region: str) -> bool:
    work = facts.work.get(region)
    return facts.stage.order <= Stage.TTGIR.order and work is not None and bool(work.matrix)


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _matrix(found: Sequence[MatrixWork], copies: int) -> tuple[str, ...]:
    """Matrix instructions of one iteration of the source, of a loop whose body the compiler copied."""
    counts: Counter[str] = Counter()
    for work in found:
        op = work.matrix
        many = "s" if work.issuers != 1 else ""
        by = "" if op is None or work.issuers is None else f" by {work.issuers} {op.issuer}{many}"
        counts[work.op if op is None else f"{op.op} {op.shape} ({op.types}){by}"] += work.count
    return tuple(f"{_number(Fraction(count, copies)):g} × {op}" for op, count in counts.items())


def _threads(kernel: KernelFacts) -> int | None:
    """Threads of a CTA; None for a warp-specialised kernel, whose partitions do different things."""
    warps, target = kernel.resources.warps_per_block.value, kernel.artifact.target
    return None if warps is None or target is None or kernel.partitions else warps * target.warp_size


def _widths(histogram: Mapping[int | None, int]) -> tuple[str, ...]:
    widths = sorted(histogram, key=lambda width: -(width or 0))
    return tuple(f"{'?' if width is None else width} ×{histogram[width]}" for width in widths)


def _bytes(
    threads: int | None, by_thread: Sequence[Mapping[int | None, int]], by_block: Mapping[int | None, int]
) -> int | None:
    """Bytes that a block moves when each instruction runs once; None where a width is not known."""
    each, tiles = [_total(histogram) for histogram in by_thread], _total(by_block)
    if tiles is None or None in each or (threads is None and any(each)):
        return None
    return tiles + sum(one or 0 for one in each) * (threads or 0)


def _total(histogram: Mapping[int | None, int]) -> int | None:
    return None if None in histogram else sum((width or 0) * count for width, count in histogram.items())


def _waits(waits: Sequence[WaitFacts]) -> Iterator[str]:
    """`cp.async.wait_group 4`, `s_waitcnt vmcnt 14…0 ×16`, each kind of wait once."""
    for op in dict.fromkeys(wait.op for wait in waits):
        same = [wait.depth for wait in waits if wait.op == op]
        depths = sorted({depth for depth in same if depth is not None}, reverse=True)
        said = f"{depths[0]}…{depths[-1]}" if len(depths) > 2 else " and ".join(map(str, depths))
        yield f"{op} {said}".rstrip() + (f" ×{len(same)}" if len(same) > 1 else "")

"""What a kernel takes, and what its last text holds: the facts of the kernel as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from artifact_inspector.analysis.access.accesses import Accesses
from artifact_inspector.analysis.access.bounds_checks import Check
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.model import Consequence, EventKind, Stage
from artifact_inspector.vocabulary.fact import Absent, Category, Column, Fact, Found, Of, Subject, Value

OF_REGISTERS = frozenset({"AI007", "AI008"})
"""Findings that nobody can make without the registers: spills, and occupancy that they limit."""


def threads_of(kernel: KernelFacts) -> int | None:
    """Threads of a CTA; None for a warp-specialised kernel, whose partitions do different things."""
    warps, target = kernel.resources.warps_per_block.value, kernel.artifact.target
    return None if warps is None or target is None or kernel.partitions else warps * target.warp_size


# -- what it takes ---------------------------------------------------------------------


def _shared(of: Subject) -> Value:
    taken = of.kernel.resources.shared.value
    return of.kernel.artifact.shared_bytes if taken is None else taken


def _bill(of: Subject) -> dict[str, Value]:
    bill: Counter[str] = Counter()
    entries = () if of.kernel.bill is None else of.kernel.bill.entries
    for entry in entries:
        bill[entry.role] += entry.bytes or 0
    known = all(entry.bytes is not None for entry in entries)
    return {role: size if known else None for role, size in bill.items()}


def _accumulation(of: Subject) -> Found:
    return of.kernel.resources.accumulation_registers.value or Absent.ABSENT


def _blocks(of: Subject) -> Found:
    held = of.kernel.occupancy
    return Absent.ABSENT if held is None else held.blocks


def _threads(of: Subject) -> Found:
    held, target = of.kernel.occupancy, of.kernel.artifact.target
    if held is None:
        return Absent.ABSENT
    return None if held.warps is None else held.warps * (32 if target is None else target.warp_size)


def _limits(of: Subject) -> Found:
    held = of.kernel.occupancy
    if held is None:
        return Absent.ABSENT
    return None if held.blocks is None else tuple(map(str, held.limited_by))


# -- what its last text holds ----------------------------------------------------------


def _last(of: Subject) -> StageFacts:
    assert of.stage is not None
    return of.stage


def _widths(histogram: Callable[[Accesses], Mapping[int | None, int]]) -> Callable[[Subject], Found]:
    def find(of: Subject) -> Found:
        counts = histogram(_last(of).accesses)
        widths = sorted(counts, key=lambda width: -(width or 0))
        said = tuple(f"{'?' if width is None else width} ×{counts[width]}" for width in widths)
        return said or Absent.ABSENT

    return find


def _read_bytes(of: Subject) -> Value:
    found = _last(of).accesses
    return _bytes(of.kernel, (found.loads, found.copies), found.tiles)


def _written_bytes(of: Subject) -> Value:
    found = _last(of).accesses
    return _bytes(of.kernel, (found.stores,), found.tile_stores)


def _bytes(
    kernel: KernelFacts, by_thread: Sequence[Mapping[int | None, int]], by_block: Mapping[int | None, int]
) -> int | None:
    """Bytes that a block moves when each instruction runs once; None where a width is not known."""
    threads = threads_of(kernel)
    each, tiles = [_total(histogram) for histogram in by_thread], _total(by_block)
    if tiles is None or None in each or (threads is None and any(each)):
        return None
    return tiles + sum(one or 0 for one in each) * (threads or 0)


def _total(histogram: Mapping[int | None, int]) -> int | None:
    return None if None in histogram else sum((width or 0) * count for width, count in histogram.items())


def matrix_unit_lost(left: Value, right: Value) -> Consequence:
    """What it costs that one side alone has matrix instructions, or multiply-adds in their place."""
    return Consequence.MATRIX if (not left) != (not right) else Consequence.REST


def _blocks_lost(left: Value, right: Value) -> Consequence:
    return Consequence.FIT if 0 in (left, right) and left != right else Consequence.OCCUPANCY


def _nothing(_left: Value, _right: Value) -> Consequence:
    """What tells the same as the blocks that fit, in other words."""
    return Consequence.REST


def _counted(kind: EventKind, category: Category, label: str) -> Fact:
    name = kind.count_name
    costs = matrix_unit_lost if kind is EventKind.MATRIX else None
    return Fact(
        f"count.{name}", category, label, "in the code", Of.FILE, lambda of: _last(of).counts[name],
        costs=costs,
    )  # fmt: skip


def _conversions(of: Subject) -> Found:
    tensor = of.kernel.stages.get(Stage.TTGIR)
    return Absent.ABSENT if tensor is None else tensor.counts[EventKind.LAYOUT_CONVERSION.count_name]


def _checked(check: Check, label: str) -> Fact:
    def find(of: Subject) -> Value:
        last = _last(of)
        # LLIR on the way to a stage that could not be read was not asked
        later = any(s.value in of.kernel.artifact.files for s in Stage if s.order > last.stage.order)
        if last.stage is Stage.LLIR and later:
            return None
        return sum(work.checks.get(check, 0) for work in last.work.values())

    return Fact(f"bounds.{check.value}", Category.BOUNDS, label, "in the code", Of.FILE, find)


def _instructions(of: Subject) -> Value:
    return _last(of).instructions


# -- what stands out -------------------------------------------------------------------


def _findings(of: Subject) -> Value:
    return tuple(sorted({finding.code for finding in find_findings(of.kernel)} - OF_REGISTERS))


def _findings_on_registers(of: Subject) -> Value:
    if of.kernel.resources.registers.value is None:
        return None
    return tuple(sorted({finding.code for finding in find_findings(of.kernel)} & OF_REGISTERS))


_C, _K, _F = Category, Of.KERNEL, Of.FILE

OF_KERNEL = (
    Fact(
        "shared.taken", _C.SHARED, "shared memory", "B per CTA", _K,
        lambda of: of.kernel.resources.shared.value, is_row=False, record="shared_bytes",
    ),
    Fact(
        "shared", _C.SHARED, "shared memory", "B per CTA", _K, _shared,
        column=Column("shared", "shared", "B per CTA", 0), brief="shared",
    ),
    Fact("shared.{}", _C.SHARED, "  {}", "B per CTA", _K, _bill, "by what it is for", step="ttgir"),
    Fact(
        "registers", _C.REGISTERS, "registers", "per thread", _K,
        lambda of: of.kernel.resources.registers.value,
        column=Column("registers", "regs", "per thread", 1), record="registers", brief="registers",
    ),
    Fact(
        "registers.accumulation", _C.REGISTERS, "  AccVGPRs of them", "per thread", _K, _accumulation,
        "registers that only matrix instructions and moves reach",
    ),
    Fact(
        "spills", _C.SPILLS, "spilled", "B per thread", _K,
        lambda of: of.kernel.resources.spill_bytes.value,
        "what did not fit into registers and lives in memory",
        column=Column("spills", "spills", "B per thread", 2), record="spill_bytes", brief="spilled",
    ),
    Fact(
        "occupancy", _C.OCCUPANCY, "blocks that fit", "per SM or CU", _K, _blocks,
        column=Column("occupancy", "blocks", "that fit on an SM or CU", 7), record="blocks_per_sm",
        brief="blocks", costs=_blocks_lost,
    ),
    Fact(
        "occupancy.warps", _C.OCCUPANCY, "warps that fit", "per SM or CU", _K,
        lambda of: None if of.kernel.occupancy is None else of.kernel.occupancy.warps,
        is_row=False, record="warps_per_sm",
    ),
    Fact("occupancy.threads", _C.OCCUPANCY, "threads that fit", "per SM or CU", _K, _threads, costs=_nothing),
    Fact("occupancy.limit", _C.OCCUPANCY, "limited by", "", _K, _limits, costs=_nothing),
)  # fmt: skip
"""What it takes of a multiprocessor."""

OF_FILE = (
    Fact(
        "loads.widths", _C.LOADS, "loads", "B per thread × count", _F, _widths(lambda found: found.loads),
        brief="loads",
    ),
    Fact(
        "copies.widths", _C.LOADS, "copies to shared memory", "B per thread × count", _F,
        _widths(lambda found: found.copies), brief="copies",
    ),
    Fact(
        "tiles.widths", _C.LOADS, "copies of tiles", "B per CTA × count", _F,
        _widths(lambda found: found.tiles), brief="tiles",
    ),
    Fact(
        "stores.widths", _C.STORES, "stores", "B per thread × count", _F, _widths(lambda found: found.stores),
        brief="stores",
    ),
    Fact(
        "tile_stores.widths", _C.STORES, "stores of tiles", "B per CTA × count", _F,
        _widths(lambda found: found.tile_stores),
    ),
    Fact("loads.bytes", _C.LOADS, "global reads, each once", "B per CTA", _F, _read_bytes),
    Fact("stores.bytes", _C.STORES, "global writes, each once", "B per CTA", _F, _written_bytes),
    _counted(EventKind.BARRIER, _C.BARRIERS, "barriers"),
    _counted(EventKind.FLOAT, _C.FLOAT, "float operations"),
    _counted(EventKind.MATRIX, _C.INSTRUCTIONS, "matrix instructions"),
    _counted(EventKind.SHARED_LOAD, _C.INSTRUCTIONS, "shared loads"),
    _counted(EventKind.SHARED_STORE, _C.INSTRUCTIONS, "shared stores"),
    _counted(EventKind.ATOMIC, _C.INSTRUCTIONS, "atomics"),
    Fact(
        "conversions", _C.CONVERSIONS, "layout conversions", "in the code", _F, _conversions, step="ttgir",
        brief="layout conversions",
    ),
    _checked(Check.COMPARE, "compares for masks"),
    _checked(Check.DIVISION, "integer divisions"),
)  # fmt: skip
"""What the last text says as a whole."""

OF_STAGE = (
    Fact(
        "instructions.{step}", _C.INSTRUCTIONS, "instructions at {step}", "in the code", Of.STAGE,
        _instructions,
        column=Column("instructions", "code", "instructions of assembly", 8, step="assembly"),
        brief="instructions",
    ),
)  # fmt: skip
"""What every text says as a whole."""

OF_FINDINGS = (
    Fact("findings", _C.FINDINGS, "findings", "", _K, _findings, brief="findings"),
    Fact(
        "findings.resources", _C.FINDINGS, "findings on registers", "", _K, _findings_on_registers,
        brief="findings on registers",
    ),
)  # fmt: skip
"""What stands out."""

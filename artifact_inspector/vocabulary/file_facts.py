"""Facts of a kernel's last text as a whole, and of every text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Consequence, EventKind, Stage
from artifact_inspector.vocabulary.fact import (
    Absent,
    Category,
    Direction,
    FactColumn,
    StageSubject,
    Unit,
    Value,
    file_fact,
    stage_fact,
)
from artifact_inspector.vocabulary.kernel_facts import threads_of
from artifact_inspector.vocabulary.value_reading import read_matrix

Histogram = Mapping[int | None, int]
"""Width in bytes → instructions; None for those whose width is unknown."""


def matrix_unit_lost(left: Value, right: Value) -> Consequence:
    """What it means that only one side has matrix instructions, or multiply-adds in their place."""
    return Consequence.MATRIX if (not left) != (not right) else Consequence.OTHER


def matrix_unit_changed(left: Value, right: Value) -> Consequence:
    """What it means that matrix instructions are missing, of another unit, or of other operand types."""
    is_changed = read_matrix(left) != read_matrix(right)
    return Consequence.MATRIX if is_changed else Consequence.OTHER


def _width_changed(_left: Value, _right: Value) -> Consequence:
    return Consequence.ACCESS


# -- widths of accesses ----------------------------------------------------------------


@file_fact(
    "loads.widths",
    "loads",
    Unit.BYTES_PER_THREAD_BY_COUNT,
    category=Category.LOADS,
    brief="loads",
    costs=_width_changed,
)
def load_widths(of: StageSubject) -> tuple[str, ...] | Absent:
    """Loads by width."""
    return _widths(of.stage.accesses.loads)


@file_fact(
    "copies.widths", "copies to shared memory", Unit.BYTES_PER_THREAD_BY_COUNT, category=Category.LOADS,
    brief="copies", costs=_width_changed,
)  # fmt: skip
def copy_widths(of: StageSubject) -> tuple[str, ...] | Absent:
    """Copies to shared memory by width."""
    return _widths(of.stage.accesses.copies)


@file_fact("tiles.widths", "copies of tiles", Unit.BYTES_PER_BLOCK_BY_COUNT, category=Category.LOADS, brief="tiles")
def tile_widths(of: StageSubject) -> tuple[str, ...] | Absent:
    """Copies of whole tiles by size."""
    return _widths(of.stage.accesses.tiles)


@file_fact(
    "stores.widths",
    "stores",
    Unit.BYTES_PER_THREAD_BY_COUNT,
    category=Category.STORES,
    brief="stores",
    costs=_width_changed,
)
def store_widths(of: StageSubject) -> tuple[str, ...] | Absent:
    """Stores by width."""
    return _widths(of.stage.accesses.stores)


@file_fact("tile_stores.widths", "stores of tiles", Unit.BYTES_PER_BLOCK_BY_COUNT, category=Category.STORES)
def tile_store_widths(of: StageSubject) -> tuple[str, ...] | Absent:
    """Stores of whole tiles by size."""
    return _widths(of.stage.accesses.tile_stores)


def _widths(counts: Histogram) -> tuple[str, ...] | Absent:
    widths = sorted(counts, key=lambda width: -(width or 0))
    descriptions = tuple(f"{'?' if width is None else width} ×{counts[width]}" for width in widths)
    return descriptions or Absent.ABSENT


@file_fact(
    "loads.bytes", "global reads, each once", Unit.BYTES_PER_BLOCK, category=Category.LOADS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def read_bytes(of: StageSubject) -> int | None:
    """Bytes that a block reads when each instruction runs once."""
    accesses = of.stage.accesses
    return _bytes(of.kernel, (accesses.loads, accesses.copies), accesses.tiles)


@file_fact(
    "stores.bytes", "global writes, each once", Unit.BYTES_PER_BLOCK, category=Category.STORES,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def written_bytes(of: StageSubject) -> int | None:
    """Bytes that a block writes when each instruction runs once."""
    accesses = of.stage.accesses
    return _bytes(of.kernel, (accesses.stores,), accesses.tile_stores)


def _bytes(kernel: KernelFacts, by_thread: Sequence[Histogram], by_block: Histogram) -> int | None:
    """Bytes that a block moves when each instruction runs once; None where a width is unknown."""
    threads = threads_of(kernel)
    per_thread, tiles = [_total(histogram) for histogram in by_thread], _total(by_block)
    if tiles is None or None in per_thread or (threads is None and any(per_thread)):
        return None
    return tiles + sum(size or 0 for size in per_thread) * (threads or 0)


def _total(histogram: Histogram) -> int | None:
    return None if None in histogram else sum((width or 0) * count for width, count in histogram.items())


# -- counts of instructions ------------------------------------------------------------


@file_fact("count.barrier", "barriers", Unit.IN_CODE, category=Category.BARRIERS, direction=Direction.LESS_IS_BETTER)
def barriers(of: StageSubject) -> int:
    """Barriers."""
    return _count(of, EventKind.BARRIER)


@file_fact("count.float", "float operations", Unit.IN_CODE, category=Category.FLOAT)
def float_operations(of: StageSubject) -> int:
    """Floating-point instructions."""
    return _count(of, EventKind.FLOAT)


@file_fact("count.matrix", "matrix instructions", Unit.IN_CODE, category=Category.INSTRUCTIONS, costs=matrix_unit_lost)
def matrix_instructions(of: StageSubject) -> int:
    """Matrix instructions."""
    return _count(of, EventKind.MATRIX)


@file_fact(
    "count.shared_load", "shared loads", Unit.IN_CODE, category=Category.INSTRUCTIONS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def shared_loads(of: StageSubject) -> int:
    """Loads from shared memory."""
    return _count(of, EventKind.SHARED_LOAD)


@file_fact(
    "count.shared_store", "shared stores", Unit.IN_CODE, category=Category.INSTRUCTIONS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def shared_stores(of: StageSubject) -> int:
    """Stores to shared memory."""
    return _count(of, EventKind.SHARED_STORE)


@file_fact(
    "count.atomic", "atomics", Unit.IN_CODE, category=Category.INSTRUCTIONS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def atomics(of: StageSubject) -> int:
    """Atomic operations."""
    return _count(of, EventKind.ATOMIC)


def _count(of: StageSubject, kind: EventKind) -> int:
    return of.stage.counts[kind.count_name]


@file_fact(
    "conversions", "layout conversions", Unit.IN_CODE, category=Category.CONVERSIONS,
    direction=Direction.LESS_IS_BETTER, step="ttgir", brief="layout conversions",
)  # fmt: skip
def conversions(of: StageSubject) -> int | Absent:
    """Layout conversions of TTGIR."""
    ttgir = of.kernel.stages.get(Stage.TTGIR)
    return Absent.ABSENT if ttgir is None else ttgir.counts[EventKind.LAYOUT_CONVERSION.count_name]


@file_fact(
    "bounds.compare", "compares for masks", Unit.IN_CODE, category=Category.BOUNDS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def compares(of: StageSubject) -> int | None:
    """Compares that decide accesses."""
    return _checks(of, CheckKind.COMPARE)


@file_fact(
    "bounds.division", "integer divisions", Unit.IN_CODE, category=Category.BOUNDS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def divisions(of: StageSubject) -> int | None:
    """Integer divisions."""
    return _checks(of, CheckKind.DIVISION)


def _checks(of: StageSubject, check: CheckKind) -> int | None:
    last = of.stage
    # LLIR has no checks where a later stage could not be read.
    has_later = any(stage.value in of.kernel.artifact.files for stage in Stage if stage.order > last.stage.order)
    if last.stage is Stage.LLIR and has_later:
        return None
    return sum(work.checks.get(check, 0) for work in last.work.values())


@stage_fact(
    "instructions.{step}", "instructions at {step}", Unit.IN_CODE, category=Category.INSTRUCTIONS,
    direction=Direction.LESS_IS_BETTER,
    column=FactColumn("instructions", "code", "instructions of assembly", 8, step="assembly"),
    brief="instructions",
)  # fmt: skip
def instructions(of: StageSubject) -> int:
    """Instructions of one text."""
    return of.stage.instructions

"""Facts of a kernel's last text as a whole, and of every text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.outline import CAS_LOOPS, ROW_LOADS, may_gain_swap_loops
from artifact_inspector.model import Consequence, EventKind, Stage
from artifact_inspector.vocabulary.fact import (
    Absent,
    Category,
    Direction,
    Fact,
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


def _widths(
    key: str,
    label: str,
    unit: Unit,
    category: Category,
    counts: Callable[[AccessCounts], Histogram],
    brief: str = "",
    costs: Callable[[Value, Value], Consequence] | None = None,
) -> Fact:
    """The widths of some accesses, each with its number."""

    @file_fact(key, label, unit, category=category, brief=brief, costs=costs)
    def find(of: StageSubject) -> tuple[str, ...] | Absent:
        histogram = counts(of.stage.accesses)
        widths = sorted(histogram, key=lambda width: -(width or 0))
        return tuple(f"{'?' if width is None else width} ×{histogram[width]}" for width in widths) or Absent.ABSENT

    return find


def count_read_bytes(kernel: KernelFacts, accesses: AccessCounts) -> int | None:
    """Bytes that a block reads when each instruction runs once; None where a width is unknown."""
    return _count_bytes(kernel, (accesses.loads, accesses.copies), accesses.tiles)


def _count_bytes(kernel: KernelFacts, per_thread: Sequence[Histogram], per_block: Histogram) -> int | None:
    if any(None in histogram for histogram in (*per_thread, per_block)):
        return None
    *sizes, tiles = (sum((width or 0) * n for width, n in one.items()) for one in (*per_thread, per_block))
    threads = threads_of(kernel) if any(sizes) else 0
    return None if threads is None else tiles + sum(sizes) * threads


def _count(
    kind: EventKind,
    label: str,
    category: Category = Category.INSTRUCTIONS,
    direction: Direction = Direction.LESS_IS_BETTER,
    costs: Callable[[Value, Value], Consequence] | None = None,
) -> Fact:
    """The instructions of a kind."""

    @file_fact(f"count.{kind.count_name}", label, Unit.IN_CODE, category=category, direction=direction, costs=costs)
    def find(of: StageSubject) -> int:
        return of.stage.counts[kind.count_name]

    return find


def _checks(check: CheckKind, label: str) -> Fact:
    """The work that keeps accesses inside the tensors; unknown in LLIR where a later stage could not be read."""

    @file_fact(
        f"bounds.{check.value}", label, Unit.IN_CODE, category=Category.BOUNDS, direction=Direction.LESS_IS_BETTER
    )
    def find(of: StageSubject) -> int | None:
        last = of.stage
        has_later = any(stage.value in of.kernel.artifact.files for stage in Stage if stage.order > last.stage.order)
        if last.stage is Stage.LLIR and has_later:
            return None
        return sum(work.checks.get(check, 0) for work in last.work.values())

    return find


_THREAD_WIDTHS, _TILE_WIDTHS = Unit.BYTES_PER_THREAD_BY_COUNT, Unit.BYTES_PER_BLOCK_BY_COUNT

load_widths = _widths(
    "loads.widths", "loads", _THREAD_WIDTHS, Category.LOADS, lambda of: of.loads, "loads", _width_changed
)
copy_widths = _widths(
    "copies.widths", "copies to shared memory", _THREAD_WIDTHS, Category.LOADS, lambda of: of.copies, "copies",
    _width_changed,
)  # fmt: skip
tile_widths = _widths("tiles.widths", "copies of tiles", _TILE_WIDTHS, Category.LOADS, lambda of: of.tiles, "tiles")
store_widths = _widths(
    "stores.widths", "stores", _THREAD_WIDTHS, Category.STORES, lambda of: of.stores, "stores", _width_changed
)
tile_store_widths = _widths(
    "tile_stores.widths", "stores of tiles", _TILE_WIDTHS, Category.STORES, lambda of: of.tile_stores
)


@file_fact(
    "loads.bytes", "global reads, each once", Unit.BYTES_PER_BLOCK, category=Category.LOADS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def read_bytes(of: StageSubject) -> int | None:
    """Bytes that a block reads when each instruction runs once."""
    return count_read_bytes(of.kernel, of.stage.accesses)


@file_fact(
    "stores.bytes", "global writes, each once", Unit.BYTES_PER_BLOCK, category=Category.STORES,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def written_bytes(of: StageSubject) -> int | None:
    """Bytes that a block writes when each instruction runs once."""
    return _count_bytes(of.kernel, (of.stage.accesses.stores,), of.stage.accesses.tile_stores)


barriers = _count(EventKind.BARRIER, "barriers", Category.BARRIERS)
float_operations = _count(EventKind.FLOAT, "float instructions", Category.FLOAT, Direction.NEUTRAL)
matrix_instructions = _count(
    EventKind.MATRIX, "matrix instructions", direction=Direction.NEUTRAL, costs=matrix_unit_lost
)
shared_loads = _count(EventKind.SHARED_LOAD, "shared loads")


@file_fact("count.ldmatrix", "of the shared loads, ldmatrix", Unit.IN_CODE, category=Category.INSTRUCTIONS)
def row_loads(of: StageSubject) -> int | Absent:
    """`ldmatrix` in PTX and `LDSM` in SASS, which `shared loads` has too: the others are `ld.shared` and `LDS`."""
    return of.stage.counts.get(ROW_LOADS) or Absent.ABSENT


shared_stores = _count(EventKind.SHARED_STORE, "shared stores")
atomics = _count(EventKind.ATOMIC, "atomics")


@file_fact(
    "count.cas_loops",
    "compare-and-swap loops",
    Unit.IN_CODE,
    category=Category.ATOMICS,
    direction=Direction.LESS_IS_BETTER,
    column=FactColumn("cas", "CAS", "compare-and-swap loops in the code", 3),
    reading="atomics that the machine code repeats until no other thread changed the word; 0 if all are native",
    record="cas_loops",
    brief="compare-and-swap loops",
    story_label="compare-and-swap loops",
)
def cas_loops(of: StageSubject) -> int | Absent | None:
    """Loops that a compiler made of atomics; unknown where a later compiler may make some."""
    counts = of.stage.counts
    if not counts[EventKind.ATOMIC.count_name]:
        return Absent.ABSENT
    return None if may_gain_swap_loops(counts) else counts.get(CAS_LOOPS, 0)


@file_fact(
    "conversions", "layout conversions", Unit.IN_CODE, category=Category.CONVERSIONS,
    direction=Direction.LESS_IS_BETTER, step="ttgir", brief="layout conversions",
)  # fmt: skip
def conversions(of: StageSubject) -> int | Absent:
    """Layout conversions of TTGIR."""
    ttgir = of.kernel.stages.get(Stage.TTGIR)
    return Absent.ABSENT if ttgir is None else ttgir.counts[EventKind.LAYOUT_CONVERSION.count_name]


compares = _checks(CheckKind.COMPARE, "compares for masks")
divisions = _checks(CheckKind.DIVISION, "integer divisions")


@stage_fact(
    "instructions.{step}", "instructions at {step}", Unit.IN_CODE, category=Category.INSTRUCTIONS,
    direction=Direction.LESS_IS_BETTER,
    column=FactColumn("instructions", "code", "instructions of assembly", 8, step="assembly"),
    brief="instructions",
)  # fmt: skip
def instructions(of: StageSubject) -> int:
    """Instructions of one text."""
    return of.stage.instructions

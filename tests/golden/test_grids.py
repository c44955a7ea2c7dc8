"""What the rules of single analyses make of all combinations of some inputs, and of inputs at random, is what it was.

`grids/<grid>.json` has each result with the numbers of the inputs that give it, in the order in which the grid makes
them; `--update-golden` writes it anew where the change is meant. That the rules are right is what the tests of their
modules say: these here notice whatever moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from random import Random

import pytest
import scratch_of_releases
from goldens import hold, inputs_by_result, rows_of
from random_programs import stages

from artifact_inspector.analysis.access.axis_rules import Axes, apply_rule, intersect
from artifact_inspector.analysis.flow.function_graph import find_graph
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork, Tiling
from artifact_inspector.analysis.matrix.work_balance import BalanceReason, check_work_balance
from artifact_inspector.analysis.order.placement import PreviousStage
from artifact_inspector.analysis.order.reference_regions import find_reference
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.order.verdict import judge_region
from artifact_inspector.analysis.overlap.memory_events import GroupCommit, IssuedOperation, QueueWait, RegisterReads
from artifact_inspector.analysis.overlap.queue_state import InFlightOperation, QueueState
from artifact_inspector.analysis.shared.allocator import BufferRequest, place_buffers
from artifact_inspector.analysis.shared.register_layouts import read_layout
from artifact_inspector.analysis.shared.scratch_memory import ScratchRules
from artifact_inspector.analysis.shared.swizzling import (
    find_conversion_reach,
    padded_elements,
    swapped_bits,
    swizzled_elements,
)
from artifact_inspector.formats.mlir.types import parse_types
from artifact_inspector.model import MatrixOp, Queue, Transfer, WaitOp
from artifact_inspector.model.axes import AxisOperation, AxisRole

FOLDER = Path(__file__).parent / "grids"


def programs(first: int) -> list[object]:
    """The order in programs at random, and whether it changed where they were written in another one."""
    found: list[object] = []
    for seed in range(first, first + 50):
        codes = stages(seed)
        reference = find_reference(codes[0])
        found.append(reference)
        before: dict[str, PreviousStage] = {}
        for number, code in enumerate(codes):
            everything = code.indices(frozenset(range(len(code.function.blocks))))
            graph = find_graph(code, everything)
            found.append({"nodes": rows_of(graph.nodes), "edges": rows_of(graph.edges)})
            for region in find_regions(code, reference, exact=number == 0):
                told, before[region.id] = judge_region(code, region, before.get(region.id))
                found.append((told, before[region.id]))
    return found


def identities() -> list[object]:
    """What is said of two regions that have more, or less, than their dots ask for, with all that may explain it."""
    dot = MatrixOp("tt.dot", "dot", 128, 32, 32, 1, "f16×f16→f32", "block")
    mma = MatrixOp("mma.sync", "mma", 16, 8, 16, 1, "f16×f16→f32", "warp")

    def work(op: MatrixOp, count: int, line: str, **more: object) -> tuple[MatrixWork, ...]:
        made = MatrixWork(op.op, op, count, count, 1 if op is dot else 4, (1, 1), (line,))
        return (replace(made, **more),) if count else ()  # type: ignore[arg-type]

    found: list[object] = []
    scalar = Tiling("blocked", (4, 1), (1, 1), 1, False)
    wide = Tiling("nvidia_mma", (4, 2), (16, 8), 1, True)
    for here, there, left, right, gone, around, times, line, tiling in product(
        (0, 1, 2), (0, 1), (0, 8, 16, 32, 48), (0, 16, 32, 80), ((), ("a",), ("a", "b")),
        (None, {"a": "b", "b": None}, {"a": None, "b": None}), (1, 2), ("k.py:1", "k.py:2"), (None, scalar, wide),
    ):  # fmt: skip
        if tiling is not None and (gone or times > 1 or there):
            continue
        told = check_work_balance(
            {"a": work(dot, here, "k.py:1", tiling=tiling), "b": work(dot, there, line)},
            {"a": work(mma, left, "k.py:1"), "b": work(mma, right, line)},
            unrolled={"a": times}, dissolved=gone, parents=around,
        )  # fmt: skip
        found.append(
            [
                (one, one.is_balanced, one.reason not in (BalanceReason.UNEXPLAINED, BalanceReason.UNKNOWN), one.ratio)
                for one in told.values()
            ]
        )
    return found


def rules_of_axes() -> list[object]:
    """What each operation makes of runs, divisors and constants of one axis and of two."""
    lines = [
        Axes((run,), (divisor,), (same,), value)
        for run, divisor, same, value in (
            (1, 1, 1, None), (8, 8, 1, None), (4, 2, 1, None), (1, 16, 8, None), (1, 4, 8, 4), (1, 1, 8, 1),
            (1, 8, 8, -8), (1, 1 << 30, 8, 0), (2, 1, 2, None), (1, 2, 4, 6), (1, 1, 8, 31),
        )
    ]  # fmt: skip
    planes = [Axes((8, 1), (16, 2), (1, 4)), Axes((1, 4), (4, 4), (8, 1)), Axes((1, 1), (8, 8), (8, 4), 8)]
    found: list[object] = [intersect(one, other) for group in (lines, planes) for one, other in product(group, group)]
    for role in AxisRole:
        for more in (
            {},
            {"grows_with_left": True},
            {"grows_with_left": False, "pointee": 4},
            {"value": 12, "axis": 1, "start": 4, "stop": 12},
        ):
            operation = AxisOperation(role, **more)  # type: ignore[arg-type]
            for count in range(4):
                for made_of in product(lines[:6] if count == 3 else lines, repeat=count):
                    found.append(apply_rule(operation, ((8,), (8,)), list(made_of)))
                for both in product(planes, repeat=min(count, 2)):
                    for shapes in (
                        ((8, 4), (8, 4)),
                        ((1, 4), (8, 4)),
                        ((8, 4), (4, 8)),
                        ((8, 4), (8, 1, 4)),
                        ((8,), (8, 4)),
                    ):
                        found.append(apply_rule(operation, shapes, [*both, *both[:1]][:count]))
    return found


def layouts_of_targets() -> list[object]:
    """Where registers, lanes and warps of every layout hold the elements of small and large tensors."""
    found: list[object] = []
    for gpu in scratch_of_releases.TARGETS:
        for layout in (*gpu.planes, *gpu.lines):
            shapes = ("128x64", "16x16", "8x128", "64x1") if layout in gpu.planes else ("512", "16")
            for shape in shapes:
                (tensor,) = parse_types(f"tensor<{shape}xf16, {layout}>", {})
                read = read_layout(tensor, gpu.lanes)
                found.append((read, read and (read.is_one_to_one, padded_elements(read, read, 16, (3, 2)))))
    return found


def places_of_buffers() -> list[object]:
    """Where buffers of random sizes and lives are placed; two that are live together never overlap."""
    chance = Random(1)
    found: list[object] = []
    for _ in range(400):
        wanted = []
        for _ in range(chance.randint(1, 8)):
            first = chance.randint(0, 6)
            size, alignment = chance.choice((8, 16, 24, 64, 100)), chance.choice((8, 16, 128))
            stop, group = first + chance.randint(1, 4), chance.choice((None, None, 1, 2))
            wanted.append(BufferRequest(size, alignment, first, stop, group, group and chance.randint(1, 2)))
        for by_size in (True, False):
            placed = place_buffers(wanted, by_size=by_size)
            ends = [offset + one.bytes for offset, one in zip(placed.offsets, wanted, strict=True)]
            assert max(ends) == placed.size
            for (a, one), (b, other) in combinations(zip(placed.offsets, wanted, strict=True), 2):
                apart = a + one.bytes <= b or b + other.bytes <= a
                assert apart or not (one.first < other.stop and other.first < one.stop)
            found.append(placed)
    return found


def conversions_of_layouts() -> list[object]:
    """How far, in how much padding and in how many turns data moves between layouts drawn at random."""
    chance = Random(2)
    found: list[object] = []
    for gpu in scratch_of_releases.TARGETS:
        for shape in ("128x64", "32x32", "8x128"):
            tensors = [parse_types(f"tensor<{shape}xf16, {layout}>", {})[0] for layout in gpu.planes]
            read = [layout for tensor in tensors if (layout := read_layout(tensor, gpu.lanes)) is not None]
            for _ in range(60):
                one, other = chance.choice(read), chance.choice(read)
                bits = chance.choice((8, 16, 32, 64))
                rules = ScratchRules((3, 6), gpu.lanes, False, chance.choice((None, 75, 80, 90)))
                found.append([find_conversion_reach(one, other).value, swapped_bits(one, other)])
                found.append(swizzled_elements(one, other, bits, *rules.accesses(bits)))
                releases = ((2, 1), (3, 0), (3, 1), (3, 2), (3, 3), (3, 5))
                found.append([padded_elements(one, other, bits, release) for release in releases])
    return found


def boards() -> list[object]:
    """What is in flight while operations, commits and waits of random queues follow each other."""
    chance = Random(3)
    found: list[object] = []
    for _ in range(300):
        board = QueueState()
        for at in range(chance.randint(4, 14)):
            queue = chance.choice((Queue.USE, Queue.GROUP, Queue.LOADS, Queue.MATRIX, Queue.STORES, Queue.COPIES))
            kind, names = chance.choice("iiiicwwrm"), tuple(chance.sample("abcd", chance.randint(1, 2)))
            if kind == "i":
                moved = Transfer(chance.choice((None, 4, 16)), queue)
                used = names if queue is Queue.USE else ()
                what = IssuedOperation(
                    moved, chance.random() < 0.8, used, None, chance.random() < 0.2, None, chance.random() < 0.2
                )
                found.append(indices_of(board.issue(at, what, at, chance.randint(0, 1))))
            elif kind == "c":
                board.commit(GroupCommit(queue))
            elif kind == "w":
                wait = QueueWait(
                    WaitOp("w", chance.choice((None, 0, 1, 2)), queue, includes_uncommitted=chance.random() < 0.3)
                )
                found.append([board.pending(wait), indices_of(board.wait(wait))])
            elif kind == "r":
                found.append(indices_of(board.read_registers(RegisterReads(frozenset(names)))))
            else:
                found.append(indices_of(board.copy().read_registers(RegisterReads(frozenset(names)))))
            found.append([board.bytes_per_thread, board.count_from((0,)), board.count_from((0, 1))])
    return found


def indices_of(flights: Iterable[InFlightOperation]) -> list[int]:
    return sorted(flight.index for flight in flights)


GRIDS: dict[str, Callable[[], list[object]]] = {
    "places of buffers": places_of_buffers,
    "conversions of layouts": conversions_of_layouts,
    "boards": boards,
    "identities": identities,
    **{f"programs {first}": partial(programs, first) for first in (0, 50, 100)},
    "rules of axes": rules_of_axes,
    "layouts of targets": layouts_of_targets,
}


@pytest.mark.parametrize(
    "grid",
    [pytest.param(grid, marks=pytest.mark.long) if grid in ("programs 50", "programs 100") else grid for grid in GRIDS],
)
def test_what_rules_make_of_a_grid_of_inputs_is_what_it_was(grid: str, request: pytest.FixtureRequest) -> None:
    results = GRIDS[grid]()
    hold(FOLDER / f"{grid}.json", results if grid.startswith("programs") else inputs_by_result(results), request)


def test_every_grid_has_its_file() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(GRIDS)

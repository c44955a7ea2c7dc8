"""Each differing fact is better, worse or neutral; judged by hand, on rows and on saved kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from artifact_inspector.comparison.pair import compare_rows
from artifact_inspector.model import PipelineKind
from artifact_inspector.model.tile import Tile
from artifact_inspector.vocabulary.fact import Category, Row, Sign, Value
from artifact_inspector.vocabulary.rows import FACTS, Summary, fact_of

A100, H100, MI300X = "sm_80", "sm_90", "gfx942"
MMA16 = ("16 × mma.sync m16n8k16 (f16×f16→f32) by 4 warps",)
TF32 = ("32 × mma.sync m16n8k8 (tf32×tf32→f32) by 4 warps",)
WGMMA = ("4 × wgmma.mma_async m64n32k16 (f16×f16→f32) by 1 warpgroup",)
MFMA = ("4 × v_mfma m32n32k8 (f16×f16→f32) by 4 wavefronts",)
PIPELINED = {"loop1.verdict.assembly": "pipelined(2)"}


@dataclass(frozen=True)
class Kernel:
    """One side of a comparison: rows, and what the kernel is."""

    rows: dict[str, Value]
    target: str = A100
    warps: int = 4
    tile: str = "dot 64×64×32"

    def summary(self) -> Summary:
        return Summary(
            "k", self.target, None, (), (Tile(self.tile),), {"num_warps": self.warps},
            ("ttir", "ttgir", "assembly"), tuple(map(row_of, self.rows, self.rows.values())),
        )  # fmt: skip


def row_of(key: str, value: Value) -> Row:
    region = key.partition(".")[0] if key.partition(".")[0] in ("loop1", "loop2", "straight") else ""
    fact = fact_of(key, region)
    category = Category.SHARED if fact is None else fact.category
    step = key.rpartition(".")[2] if key.rpartition(".")[2] in ("ttgir", "assembly") else "assembly"
    return Row(key, category, key, "", value, step, region)


def sign_of(key: str, left: Kernel, right: Kernel) -> Sign:
    (fact,) = (fact for fact in compare_rows(left.summary(), right.summary()) if fact.key == key)
    (mirror,) = (fact for fact in compare_rows(right.summary(), left.summary()) if fact.key == key)
    assert mirror.direction is {Sign.WORSE: Sign.BETTER, Sign.BETTER: Sign.WORSE}.get(fact.direction, Sign.NEUTRAL)
    return fact.direction


def one(key: str, left: Value, right: Value, **others: Value) -> Sign:
    """The sign of one row; None leaves it out. `others` are rows of both."""
    sides = [Kernel({**others, **({} if value is None else {key: value})}) for value in (left, right)]
    return sign_of(key, *sides)


@pytest.mark.parametrize(
    ("key", "left", "right", "expected"),
    [
        ("spills", 0, 64, Sign.WORSE),
        ("spills", 64, 0, Sign.BETTER),
        ("registers", 128, 96, Sign.BETTER),
        ("shared", 24576, 36864, Sign.WORSE),
        ("shared.reduction across warps", None, 2048, Sign.WORSE),
        ("occupancy", 12, 16, Sign.BETTER),
        ("occupancy", 3, 0, Sign.WORSE),
        ("occupancy.limit", ("registers",), ("warps",), Sign.NEUTRAL),
        ("count.barrier", 5, 9, Sign.WORSE),
        ("conversions", 2, 0, Sign.BETTER),
        ("count.float", 16, 32, Sign.NEUTRAL),
        ("count.matrix", 16, 32, Sign.NEUTRAL),
        ("count.matrix", 16, 0, Sign.WORSE),
        ("instructions.assembly", 131, 233, Sign.WORSE),
        ("instructions.ttgir", 131, 233, Sign.NEUTRAL),  # does not run
        ("loads.widths", ("16 ×4",), ("2 ×32",), Sign.WORSE),
        ("loads.widths", ("4 ×8", "2 ×1"), ("16 ×2", "2 ×1"), Sign.BETTER),
        ("loads.widths", ("16 ×4",), ("16 ×8",), Sign.NEUTRAL),
        ("loads.widths", ("16 ×20", "2 ×2"), ("16 ×6", "2 ×2"), Sign.NEUTRAL),  # what is loaded once is no narrower
        ("loads.widths", ("16 ×6", "2 ×2"), ("16 ×6", "2 ×20"), Sign.WORSE),
        ("stores.widths", ("16 ×1",), ("4 ×4",), Sign.WORSE),
        ("findings", (), ("AI002",), Sign.WORSE),
        ("findings", ("AI002", "AI006"), ("AI006",), Sign.BETTER),
        ("findings", ("AI002",), ("AI003",), Sign.NEUTRAL),
    ],
)
def test_a_fact_of_the_kernel_has_a_sign(key: str, left: Value, right: Value, expected: Sign) -> None:
    assert one(key, left, right) is expected


@pytest.mark.parametrize(
    ("key", "left", "right", "expected"),
    [
        ("loop1.pipeline.depth", 4, 0, Sign.WORSE),
        ("loop1.pipeline.iterations", 1, 2, Sign.BETTER),
        ("loop1.pipeline.buffers", 4, 3, Sign.WORSE),
        ("loop1.pipeline.depth", 4, None, Sign.WORSE),  # no pipeline any more
        ("loop1.waits", ("cp.async.wait_group 2",), ("cp.async.wait_group 0",), Sign.WORSE),
        ("loop1.waits", ("cp.async.wait_group 2",), ("cp.async.wait_group 2 ×2",), Sign.NEUTRAL),  # redundant
        ("loop1.waits", ("cp.async.wait_group 0",), ("cp.async.wait_group 0 ×2",), Sign.NEUTRAL),
        ("loop1.in_flight.bytes", 30720, 10240, Sign.WORSE),
        ("loop1.trips", 8, 16, Sign.NEUTRAL),
        ("loop1.trip.instructions", 26, 31, Sign.NEUTRAL),  # of PTX, which ptxas changes
        ("loop1.mma", MMA16, WGMMA, Sign.BETTER),
        ("loop1.mma", WGMMA, MMA16, Sign.WORSE),
        ("loop1.mma", MMA16, TF32, Sign.WORSE),
        ("loop1.mma", MMA16, ("32 × mma.sync m16n8k8 (f16×f16→f32) by 4 warps",), Sign.NEUTRAL),
    ],
)
def test_a_fact_of_a_loop_has_a_sign(key: str, left: Value, right: Value, expected: Sign) -> None:
    assert one(key, left, right, **PIPELINED, **{"loop1.pipeline.kind": PipelineKind.GROUPS}) is expected


def test_more_overlap_of_another_pipeline_is_better() -> None:
    left, right = (
        Kernel({"loop1.in_flight.overlap": overlap, "loop1.pipeline.kind": kind, **PIPELINED})
        for overlap, kind in ((50, PipelineKind.REGISTERS), (100, PipelineKind.GROUPS))
    )
    assert sign_of("loop1.in_flight.overlap", left, right) is Sign.BETTER


def test_ptx_decides_no_loads_in_flight_without_a_pipeline() -> None:
    assert one("loop1.in_flight.bytes", 30720, 10240, **PIPELINED) is Sign.NEUTRAL


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("pipelined(2)", "serial", Sign.WORSE),
        ("grouped", "partly pipelined", Sign.BETTER),
        ("pipelined(2)", "pipelined(3)", Sign.NEUTRAL),
        ("grouped", "clustered", Sign.NEUTRAL),
        ("pipelined(2)", "unrolled", Sign.NEUTRAL),
    ],
)
def test_only_a_pipeline_is_better_than_another_order(left: str, right: str, expected: Sign) -> None:
    assert one("loop1.verdict.assembly", left, right) is expected
    assert one("loop1.verdict.ttgir", left, right, **PIPELINED) is Sign.NEUTRAL


def test_a_wait_outside_loops_is_neutral() -> None:
    waits = ("cp.async.wait_group 2",), ("cp.async.wait_group 0",)
    assert one("straight.waits", *waits, **{"straight.verdict.assembly": "single"}) is Sign.NEUTRAL


def test_another_vendor_has_other_registers_and_instructions_but_the_same_occupancy() -> None:
    left = Kernel({"registers": 95, "instructions.assembly": 300, "occupancy": 8, "occupancy.share": 50.0})
    right = Kernel({"registers": 220, "instructions.assembly": 900, "occupancy": 4, "occupancy.share": 100.0}, MI300X)
    assert sign_of("registers", left, right) is Sign.NEUTRAL
    assert sign_of("instructions.assembly", left, right) is Sign.NEUTRAL
    assert sign_of("occupancy", left, right) is Sign.NEUTRAL
    assert sign_of("occupancy.share", left, right) is Sign.BETTER
    none_fits = replace(right, rows={**right.rows, "occupancy": 0})
    assert sign_of("occupancy", left, none_fits) is Sign.WORSE


def test_blocks_of_other_sizes_do_not_compare() -> None:
    left, right = (
        Kernel({"occupancy": 8, "occupancy.share": 50.0}),
        Kernel({"occupancy": 5, "occupancy.share": 62.5}, warps=8),
    )
    assert sign_of("occupancy", left, right) is Sign.NEUTRAL
    assert sign_of("occupancy.share", left, right) is Sign.BETTER


def test_a_larger_tile_does_more_work() -> None:
    left, right = Kernel({"instructions.assembly": 300}), Kernel({"instructions.assembly": 500}, tile="dot 128×64×32")
    assert sign_of("instructions.assembly", left, right) is Sign.NEUTRAL


@pytest.mark.parametrize(
    ("key", "old", "new", "expected"),
    [
        ("registers", 16, 22, Sign.NEUTRAL),
        ("findings", (), ("AI006",), Sign.NEUTRAL),  # more loads of the same width
        ("findings", (), ("AI002",), Sign.WORSE),
        ("loop1.in_flight.bytes", 1024, 4096, Sign.NEUTRAL),
        ("shared.reduction across warps", 16, 8, Sign.NEUTRAL),
        ("count.barrier", 2, 0, Sign.NEUTRAL),
        ("loads.widths", ("16 ×2",), ("4 ×16",), Sign.WORSE),
        ("spills", 0, 64, Sign.WORSE),
    ],
)
def test_counts_of_another_tile_decide_nothing(key: str, old: Value, new: Value, expected: Sign) -> None:
    left, right = Kernel({key: old, **PIPELINED}, MI300X), Kernel({key: new, **PIPELINED}, MI300X, tile="dot 128×64×32")
    assert sign_of(key, left, right) is expected


def test_an_unrolled_loop_has_not_lost_the_matrix_unit() -> None:
    left = Kernel({"loop1.mma": MMA16, "count.matrix": 16, **PIPELINED})
    right = Kernel({"count.matrix": 64, "loop1.verdict.assembly": "unrolled"}, MI300X)
    (fact,) = (fact for fact in compare_rows(left.summary(), right.summary()) if fact.key == "loop1.mma")
    assert (fact.differs, fact.direction) == (False, Sign.NEUTRAL)
    assert "outside of this loop" in fact.reason


def test_multiply_adds_in_place_of_mma_are_a_loss() -> None:
    left = Kernel({"loop1.mma": MMA16, "count.matrix": 16, **PIPELINED})
    right = Kernel({"loop1.mma.fused": 1024, "count.matrix": 0, **PIPELINED})
    assert sign_of("loop1.mma", left, right) is Sign.WORSE
    assert sign_of("loop1.mma.fused", left, right) is Sign.WORSE
    beside = Kernel({"loop1.mma": MMA16, "straight.mma.fused": 25, "count.matrix": 16, **PIPELINED})
    assert sign_of("straight.mma.fused", left, beside) is Sign.NEUTRAL  # of no dot that had a matrix unit


def test_a_program_without_dots_has_no_matrix_unit_to_lose() -> None:
    left, right = Kernel({"count.matrix": 16}), Kernel({"count.matrix": 0}, tile="load 64")
    assert sign_of("count.matrix", left, right) is Sign.NEUTRAL
    assert sign_of("count.matrix", left, Kernel({"count.matrix": 0})) is Sign.WORSE


def test_the_matrix_unit_of_another_vendor_is_neither_better_nor_worse() -> None:
    left, right = Kernel({"loop1.mma": MMA16, **PIPELINED}), Kernel({"loop1.mma": MFMA, **PIPELINED}, MI300X)
    assert sign_of("loop1.mma", left, right) is Sign.NEUTRAL


def test_loads_that_became_copies_count_together() -> None:
    left = Kernel({"loads.widths": ("16 ×8", "4 ×1")})
    right = Kernel({"loads.widths": ("4 ×1",), "copies.widths": ("16 ×8",)})
    assert sign_of("loads.widths", left, right) is Sign.NEUTRAL
    assert sign_of("copies.widths", left, right) is Sign.NEUTRAL


def test_facts_of_the_vocabulary_have_the_direction_of_the_field() -> None:
    """Less is better for what is taken or spent, more for what overlaps, neither for what only counts."""
    directions = {fact.key: fact.direction.value for fact in FACTS if fact.is_row}
    for key in ("spills", "registers", "shared", "count.barrier", "conversions", "findings", "mma.fused"):
        assert directions[key] == "less", key
    for key in ("occupancy", "occupancy.share", "in_flight.bytes", "in_flight.overlap", "pipeline.depth"):
        assert directions[key] == "more", key
    for key in ("mma", "verdict.{step}", "count.matrix", "count.float", "trips", "pipeline.kind"):
        assert directions[key] == "neutral", key


def test_between_vendors_more_warps_than_half_decide_nothing() -> None:
    sides = [Kernel({"occupancy.share": share}, target) for share, target in ((75.0, A100), (100.0, MI300X))]
    assert sign_of("occupancy.share", *sides) is Sign.NEUTRAL


def test_straight_loads_of_ptx_are_ordered_again_and_those_of_machine_code_are_not() -> None:
    rows = ({"straight.in_flight.bytes": 8192}, {"straight.in_flight.bytes": 6144})
    assert sign_of("straight.in_flight.bytes", *(Kernel(row) for row in rows)) is Sign.NEUTRAL
    assert sign_of("straight.in_flight.bytes", *(Kernel(row, MI300X) for row in rows)) is Sign.WORSE


def test_element_accesses_that_loads_of_elements_replace_are_no_gain() -> None:
    matrix = {"loop1.mma": MMA16}
    old = Kernel({**matrix, "loop1.mma.elements": 32, "copies.widths": ("16 ×12", "8 ×24")})
    new = Kernel({**matrix, "copies.widths": ("16 ×12",), "loads.widths": ("1 ×64",)})
    assert sign_of("loop1.mma.elements", old, new) is Sign.NEUTRAL
    assert sign_of("loads.widths", old, new) is Sign.WORSE


def test_a_finding_on_occupancy_does_not_outweigh_the_share() -> None:
    few = Kernel({"findings": (), "occupancy.share": 25.0})
    for share, expected in ((37.5, Sign.NEUTRAL), (25.0, Sign.NEUTRAL), (12.5, Sign.WORSE)):
        assert sign_of("findings", few, Kernel({"findings": ("AI008",), "occupancy.share": share})) is expected


def test_one_load_of_many_is_no_depth_of_a_pipeline_in_registers() -> None:
    for loads, expected in ((20, Sign.NEUTRAL), (4, Sign.WORSE)):
        others = {"loop1.pipeline.kind": PipelineKind.REGISTERS, "loop1.in_flight.loads": loads, **PIPELINED}
        assert one("loop1.pipeline.depth", 1, 0, **others) is expected
    assert one("loop1.pipeline.iterations", 0.05, 0, **PIPELINED) is Sign.NEUTRAL


def test_an_exchange_in_more_rounds_of_fewer_bytes_is_neutral() -> None:
    key, rows = "shared.reduction across warps", {"shared": 2048, "count.barrier": 5}
    for barriers, expected in ((10, Sign.NEUTRAL), (5, Sign.BETTER)):
        right = Kernel({key: 1024, "shared": 1024, "count.barrier": barriers})
        assert sign_of(key, Kernel({key: 2048, **rows}), right) is expected


def test_a_barrier_of_one_warp_waits_for_no_other() -> None:
    left, right = (Kernel({"count.barrier": count}, warps=1) for count in (7, 11))
    assert sign_of("count.barrier", left, right) is Sign.NEUTRAL


def test_a_second_partition_that_multiplies_the_whole_tile_is_worse() -> None:
    for region in ("loop1", "loop2", "straight"):
        for flop, expected in ((131072, Sign.WORSE), (65536, Sign.NEUTRAL)):
            left = Kernel({"partitions.compute": 1, f"{region}.mma.flop": 131072})
            right = Kernel({"partitions.compute": 2, f"{region}.mma.flop": flop, f"{region}/2.mma.flop": flop})
            assert sign_of("partitions.compute", left, right) is expected


def test_more_accesses_through_a_smaller_buffer_are_one_exchange_in_more_rounds() -> None:
    for buffer, expected in ((256, Sign.WORSE), (128, Sign.NEUTRAL)):
        left = Kernel({"count.shared_store": 3, "shared.layout conversion": 256})
        right = Kernel({"count.shared_store": 5, "shared.layout conversion": buffer})
        assert sign_of("count.shared_store", left, right) is expected


@pytest.mark.parametrize(
    ("verdict", "copies", "kind", "expected"),
    [
        ("unrolled", None, PipelineKind.GROUPS, Sign.WORSE),
        ("unrolled", ("16 ×4",), PipelineKind.GROUPS, Sign.NEUTRAL),  # its straight-line code has them
        ("unrolled", None, PipelineKind.REGISTERS, Sign.NEUTRAL),
        ("gone", None, PipelineKind.GROUPS, Sign.NEUTRAL),
    ],
)
def test_an_unrolled_loop_without_copies_in_its_kernel_has_lost_them(
    verdict: str, copies: Value, kind: PipelineKind, expected: Sign
) -> None:
    left = Kernel({**PIPELINED, "loop1.pipeline.kind": kind, "copies.widths": ("16 ×8",)})
    right = Kernel({"loop1.verdict.assembly": verdict, "copies.widths": copies}, target=MI300X)
    assert sign_of("loop1.pipeline.kind", left, right) is expected


COUNTS = {"count.barrier": 8, "loop1.trip.barriers": 2, "straight.once.barriers": 4}


@pytest.mark.parametrize(
    ("changed", "key", "expected"),
    [
        ({"count.barrier": 12}, "count.barrier", Sign.NEUTRAL),  # a copy of the body
        ({"count.barrier": 9, "loop1.trip.barriers": 3}, "loop1.trip.barriers", Sign.WORSE),
        ({"count.barrier": 9, "loop1.trip.barriers": 1}, "loop1.trip.barriers", Sign.BETTER),
        ({"count.barrier": 10, "straight.once.barriers": 6}, "straight.once.barriers", Sign.WORSE),
    ],
)
def test_counts_of_a_loop_are_compared_per_iteration(changed: dict[str, Value], key: str, expected: Sign) -> None:
    assert sign_of(key, Kernel(COUNTS | PIPELINED), Kernel(COUNTS | PIPELINED | changed)) is expected


def test_a_loop_without_an_amount_has_none_of_it() -> None:
    assert one("loop1.trip.shared_loads", None, 4, **PIPELINED) is Sign.WORSE


def test_a_body_of_more_iterations_than_are_known_has_no_direction() -> None:
    amounts: list[dict[str, Value]] = [
        {"loop1.trip.read_bytes": 1024 * n, "loop1.trip.instructions": 30 * n, "loop1.trip.barriers": 2 * n}
        for n in (1, 2)
    ]
    left, right = (Kernel(PIPELINED | one) for one in amounts)
    assert sign_of("loop1.trip.barriers", left, right) is Sign.NEUTRAL


def test_code_outside_of_loops_does_not_compare_with_an_unrolled_loop() -> None:
    left, right = (
        Kernel(COUNTS | PIPELINED),
        Kernel({"straight.once.barriers": 9, "loop1.verdict.assembly": "unrolled"}),
    )
    assert sign_of("straight.once.barriers", left, right) is Sign.NEUTRAL

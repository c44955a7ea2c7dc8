"""What layouts make of dots, counted by hand: whole instructions, by all warps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_inspector.analysis.matrix.dot_tiling import (
    KnownMatrixWork,
    RegionMatrixWork,
    describe_redundancy,
    padded_flop_of,
)
from artifact_inspector.analysis.matrix.matrix_work import Tiling
from artifact_inspector.model import Issuer, MatrixOp

HALF = "f16×f16→f32"


def dot(m: int, n: int, k: int, tiling: Tiling | None = None, blocks: int = 1, **more: object) -> KnownMatrixWork:
    op = MatrixOp("tt.dot", "dot", m, n, k, blocks, HALF, Issuer.BLOCK)
    return replace(KnownMatrixWork(op, 1, 1, 1, tiling, None, ("k.py:1",)), **more)


def mma(m: int = 16, n: int = 8, k: int = 16, *, blocks: int = 1, issuers: int = 4, **more: object) -> KnownMatrixWork:
    op = MatrixOp("mma.sync", "mma", m, n, k, blocks, HALF, Issuer.WARP)
    return replace(KnownMatrixWork(op, 1, 1, issuers, None, None, ("k.py:1",)), **more)


def wgmma(issuers: int = 1) -> KnownMatrixWork:
    op = MatrixOp("wgmma.mma_async", "wgmma", 64, 64, 16, 1, HALF, Issuer.WARPGROUP)
    return KnownMatrixWork(op, 1, 1, issuers, None, None, ())


def tiled(*warps: int, instruction: tuple[int, ...] = (16, 8), ctas: int = 1) -> Tiling:
    return Tiling("nvidia_mma", warps, instruction, ctas, True)


def extents(m: int, n: int, k: int, blocks: int = 1) -> int:
    """Operations of so many multiply-adds."""
    return 2 * m * n * k * blocks


@pytest.mark.parametrize(
    ("asked", "covered"),
    [
        (dot(64, 8, 16, tiled(4, 1)), (64, 8, 16)),
        (dot(65, 8, 16, tiled(4, 1)), (128, 8, 16)),  # one row more is one more of each warp's
        (dot(63, 8, 16, tiled(4, 1)), (64, 8, 16)),
        (dot(16, 16, 16, tiled(4, 1)), (64, 16, 16)),
        (dot(16, 16, 16, tiled(1, 4)), (16, 32, 16)),
        (dot(16, 16, 16, tiled(2, 2)), (32, 16, 16)),
        (dot(64, 8, 8, tiled(4, 1)), (64, 8, 16)),
        (dot(64, 8, 17, tiled(4, 1)), (64, 8, 32)),
        (dot(16, 9, 16, tiled(4)), (64, 16, 16)),  # extents of one dimension name no side: all four repeat it
        (dot(16, 9, 16, tiled()), (16, 16, 16)),
        (dot(32, 8, 16, tiled(4, 1, instruction=(8, 16))), (32, 16, 16)),
    ],
)
def test_every_warp_does_whole_instructions(asked: KnownMatrixWork, covered: tuple[int, int, int]) -> None:
    assert padded_flop_of(asked, (mma(),)) == extents(*covered)


def test_warps_along_a_batch_do_one_matrix_each() -> None:
    batched = tiled(2, 2, 1, instruction=(1, 16, 8))
    assert padded_flop_of(dot(32, 8, 16, batched, blocks=2), (mma(),)) == extents(32, 8, 16, 2)
    assert padded_flop_of(dot(32, 8, 16, batched, blocks=3), (mma(),)) == extents(32, 8, 16, 4)
    assert padded_flop_of(dot(32, 8, 16, tiled(4, 1), blocks=3), (mma(),)) == extents(64, 8, 16, 3)


@pytest.mark.parametrize(("issuers", "copies"), [(2, 1), (4, 1), (7, 1), (8, 2), (12, 3)])
def test_warps_beyond_those_of_the_layout_do_all_of_it_again(issuers: int, copies: int) -> None:
    asked = dot(64, 8, 16, tiled(4, 1))
    assert padded_flop_of(asked, (mma(issuers=issuers),)) == copies * extents(64, 8, 16)


def test_four_warps_share_the_rows_of_a_warpgroups_instruction() -> None:
    # 64 rows are 16 of each of four warps; a second warpgroup has the next 64.
    asked = dot(64, 64, 16, tiled(4, 1, instruction=()))
    assert padded_flop_of(asked, (wgmma(),)) == extents(64, 64, 16)
    assert padded_flop_of(replace(asked, tiling=tiled(8, 1, instruction=())), (wgmma(2),)) == extents(128, 64, 16)
    assert (wgmma().warps_per_issue, mma().warps_per_issue) == (4, 1)


def test_products_side_by_side_are_one_square_where_the_layout_names_no_extents() -> None:
    quarters = mma(8, 8, 4, blocks=4)  # 16×16, each with 4 of k
    assert padded_flop_of(dot(16, 9, 4, tiled(1, 1, instruction=()), issuers=1), (quarters,)) == 4 * extents(16, 16, 4)


@pytest.mark.parametrize(
    "tiling", [None, tiled(4, 1, ctas=2), Tiling("blocked", (4, 1), (), 1, False)], ids=["none", "cluster", "blocked"]
)
def test_a_layout_that_tells_nothing_covers_the_tile(tiling: Tiling | None) -> None:
    asked = dot(16, 16, 16, tiling)
    assert (padded_flop_of(asked, (mma(),)), describe_redundancy(asked, (mma(),))) == (extents(16, 16, 16), "")


def test_a_dot_without_instructions_covers_its_tile() -> None:
    assert padded_flop_of(dot(16, 16, 16, tiled(4, 1)), ()) == extents(16, 16, 16)


def test_a_dot_was_cut_by_the_instruction_that_its_layout_names() -> None:
    deep, shallow, wide = mma(k=16), mma(k=8), mma(n=16, k=8)
    named = dot(64, 8, 8, tiled(4, 1, instruction=(16, 8, 8)))
    assert padded_flop_of(named, (deep, shallow)) == extents(64, 8, 8)
    assert padded_flop_of(replace(named, tiling=tiled(4, 1)), (deep, shallow)) == extents(64, 8, 16)
    assert padded_flop_of(replace(named, tiling=tiled(4, 1)), (wide, deep)) == extents(64, 8, 16)
    other = replace(named, tiling=tiled(4, 1, instruction=(32, 8)))  # no such instruction: the first there is
    assert padded_flop_of(other, (deep, shallow)) == extents(128, 8, 8)


@pytest.mark.parametrize(
    ("asked", "issuers", "words"),
    [
        (dot(64, 16, 32, tiled(4, 1)), 4, ""),
        (dot(16, 16, 16, tiled(4, 1)), 4, "4×1 warps of 16×8 cover 64×16, but the tile is 16×16: ×4 the work"),
        (dot(64, 8, 8, tiled(4, 1)), 4, "4×1 warps of 16×8×16 cover 64×8×16, but the tile is 64×8×8: ×2 the work"),
        (dot(64, 8, 16, tiled(4, 1)), 8, "2 times 4×1 warps of 16×8 cover 64×8, but the tile is 64×8: ×2 the work"),
        (
            dot(16, 8, 16, tiled(4, 1, 1, instruction=(1, 16, 8)), blocks=3),
            4,
            "4×1×1 warps of 16×8×1 cover 16×8×4, but the tile is 16×8×3: ×1.33 the work",
        ),
    ],
)
def test_work_beyond_the_tile_is_put_in_words(asked: KnownMatrixWork, issuers: int, words: str) -> None:
    assert describe_redundancy(asked, (mma(issuers=issuers),)) == words


def test_operations_are_those_of_all_issuers() -> None:
    part = mma(issuers=4, count=6, along_path=2)
    assert (part.flop, part.flop_along_path) == (6 * 4096 * 4, 2 * 4096 * 4)


def side(*dots: KnownMatrixWork, works: tuple[KnownMatrixWork, ...] = (), unrolled_by: int = 1) -> RegionMatrixWork:
    return RegionMatrixWork("r", dots, works, "", unrolled_by, False, None, frozenset(), 1)


def test_a_region_adds_up_its_dots_and_its_instructions() -> None:
    small = dot(16, 16, 16, tiled(4, 1), count=3, along_path=2)
    whole = dot(64, 8, 16, tiled(4, 1))
    found = side(small, whole, works=(mma(), mma(k=8, issuers=2)))
    assert found.dot_flop == 3 * extents(16, 16, 16) + extents(64, 8, 16)
    assert found.padded_flop == 3 * extents(64, 16, 16) + extents(64, 8, 16)
    assert found.padded_flop_along_path == 2 * extents(64, 16, 16) + extents(64, 8, 16)
    assert found.instruction_flop == 4 * 4096 + 2 * 2048


def test_of_dots_that_exclude_each_other_the_first_stands_on_the_path() -> None:
    one = dot(64, 8, 16, sources=("k.py:1",), exclusive_sources=("k.py:2",))
    two = dot(64, 8, 32, sources=("k.py:2",), exclusive_sources=("k.py:1",))
    both = dot(64, 8, 64, sources=("k.py:3",))
    assert side(one, two, both).on_one_path == (one, both)
    assert side(one, two, both).padded_flop_along_path == extents(64, 8, 16) + extents(64, 8, 64)


def test_an_iteration_is_that_of_the_dots_or_else_a_share_of_the_instructions() -> None:
    assert side(dot(16, 16, 16), works=(mma(),), unrolled_by=2).iteration_flop == extents(16, 16, 16)
    assert side(works=(mma(),), unrolled_by=2).iteration_flop == 2 * 4096

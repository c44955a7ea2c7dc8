"""The work of matrix instructions in every saved kernel, held against its dots and against grep."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import grep
import pytest
from handwritten import prepared
from saved import ROOT, Saved, saved, saved_kernels

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.matrix.generation import MatrixGeneration, count_packed_dots, describe_generation
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork, find_matrix_work, warps_of
from artifact_inspector.analysis.matrix.work_balance import BalanceReason, WorkBalance, check_work_balance
from artifact_inspector.analysis.order.reference_regions import find_reference
from artifact_inspector.analysis.order.regions import Region, find_regions
from artifact_inspector.formats import format_of
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Function, Module, Stage

KERNELS = [kernel for kernel in saved_kernels() if Stage.TTGIR in kernel.stages and len(kernel.stages) > 3]


class Located(NamedTuple):
    """A region at one stage, with what is around it."""

    code: FunctionCode
    region: Region
    module: Module


class Checked(NamedTuple):
    """Dots and instructions of one function by region."""

    asked: dict[str, tuple[MatrixWork, ...]]
    dots: dict[str, tuple[MatrixWork, ...]]
    works: dict[str, tuple[MatrixWork, ...]]
    last: dict[str, Located]
    identities: dict[str, WorkBalance]


@cache
def check(path: str) -> list[Checked]:
    """Each function that all stages have, as TTIR, TTGIR and the last stage show it."""
    kernel = saved(path)
    last = kernel.stages[-1]
    stages = {stage: kernel.module(stage) for stage in (Stage.TTIR, Stage.TTGIR, last)}
    found = []
    for number, function in enumerate(stages[Stage.TTIR].functions):
        located = {stage: locate(module, module.functions[number], function) for stage, module in stages.items()}
        asked, dots = (
            {name: work_of(at, None) for name, at in located[stage].items()} for stage in (Stage.TTIR, Stage.TTGIR)
        )
        every = [work for works in dots.values() for work in works]
        ttgir = next(iter(located[Stage.TTGIR].values()))
        works = {
            name: work_of(at, warps_of(ttgir.code, dots.get(name) or every, None)) for name, at in located[last].items()
        }
        facts = {region.id.rpartition("/")[2]: region for region in kernel.facts.stages[last].regions}
        identities = check_work_balance(
            dots,
            works,
            unrolled={name: facts[name].unroll_factor for name in works if name in facts},
            dissolved={name for name, at in located[last].items() if at.region.residue is not None},
            parents={name: at.region.parent for name, at in located[last].items()},
        )
        found.append(Checked(asked, dots, works, located[last], identities))
    return found


def locate(module: Module, function: Function, original: Function) -> dict[str, Located]:
    """The regions of a function at one stage, found by those of the program."""
    reference = find_reference(prepared(original, Stage.TTIR))
    code = FunctionCode(function, module, format_of(module.stage))
    regions = find_regions(code, reference, exact=module.stage is Stage.TTIR)
    return {region.id: Located(code, region, module) for region in regions}


def work_of(at: Located, warps: int | None) -> tuple[MatrixWork, ...]:
    return find_matrix_work(at.code, at.region, warps)


def identity(path: str, region: str) -> WorkBalance:
    (only,) = check(path)
    return only.identities[region]


def generation(path: str, region: str) -> MatrixGeneration:
    (only,) = check(path)
    kernel = saved(path)
    at = only.last[region]
    facts = kernel.facts.last
    found = None if facts is None else facts.region(region)
    assert found is not None
    return describe_generation(
        parse_target(kernel.target),
        only.works[region],
        found.fused_multiply_adds,
        dots=only.dots[region],
        program_dots=only.asked[region],
        packed=count_packed_dots(at.code, at.region),
    )


def every(kernels: list[Saved]) -> list[object]:
    return [pytest.param(kernel.path, id=kernel.path) for kernel in kernels]


@pytest.mark.parametrize("path", every(KERNELS))
def test_the_identity_holds_or_is_explained_in_every_region(path: str) -> None:
    for checked in check(path):
        unexplained = (BalanceReason.UNEXPLAINED, BalanceReason.UNKNOWN)
        assert [found for found in checked.identities.values() if found.reason in unexplained] == []


@pytest.mark.parametrize("path", every(KERNELS))
def test_every_matrix_instruction_that_grep_counts_stands_in_one_region(path: str) -> None:
    kernel = saved(path)
    last = kernel.stages[-1]
    counted = sum(
        work.count
        for checked in check(path)
        for name, works in checked.works.items()
        if checked.last[name].region.residue is None  # those stand in another region too
        for work in works
    )
    assert counted == grep.count(last.value, kernel.text(last))["matrix"]


@pytest.mark.long
def test_most_regions_hold_exactly_and_the_others_differ_for_few_reasons() -> None:
    # Read off the files one by one: see the tests below for one of each reason.
    reasons = dict.fromkeys(BalanceReason, 0)
    for kernel in KERNELS:
        for checked in check(kernel.path):
            for found in checked.identities.values():
                reasons[found.reason] += 1
    assert {reason for reason, count in reasons.items() if count} == {
        BalanceReason.EXACT,
        BalanceReason.UNROLLED,
        BalanceReason.REDUNDANT,
        BalanceReason.PEELED,
        BalanceReason.SCALAR,
    }
    assert reasons[BalanceReason.EXACT] > 3 * sum(
        count for reason, count in reasons.items() if reason is not BalanceReason.EXACT
    )


@pytest.mark.parametrize(
    ("path", "region", "flop", "words"),
    [
        # m16n8k16 is 2·16·8·16 = 4096. Each of 4 warps along M has 128/(4·16) = 2 rows of instructions,
        # 32/8 = 4 columns and 32/16 = 2 steps along K: 2·4·2 = 16.
        ("3.6.0/sm_80/matmul_grouped", "loop@81", 262144, "16 × 4096 × 4 warps = 2·128·32·32"),
        # Triton 3.9 prefetches operands by halves of K: two dots of k = 16.
        ("3.9.0/sm_80/matmul_grouped", "loop@81", 262144, "16 × 4096 × 4 warps = 2 × 2·128·32·16"),
        ("2.1.0/sm_80/matmul_grouped", "loop#1", 262144, "16 × 4096 × 4 warps = 2 × 2·128·32·16"),
        # m64n32k16 is 2·64·32·16 = 65536, by a warpgroup: 128/64 = 2 rows, 32/16 = 2 steps.
        ("3.6.0/sm_90/matmul_grouped", "loop@81", 262144, "4 × 65536 × 1 warpgroup = 2·128·32·32"),
        # m128n32k16 is 131072 and covers the tile but for K: 2 steps.
        ("3.6.0/sm_100/matmul_grouped", "loop@81", 262144, "2 × 131072 × 1 CTA = 2·128·32·32"),
        # 32x32x8 is 16384: each of 4 wavefronts has 32 of 128 rows, 32/8 = 4 steps.
        ("3.6.0/gfx942/matmul_grouped", "loop@81", 262144, "4 × 16384 × 4 wavefronts = 2·128·32·32"),
        # 32x32x16 is 32768: 2 steps.
        ("3.6.0/gfx950/matmul_grouped", "loop@81", 262144, "2 × 32768 × 4 wavefronts = 2·128·32·32"),
        # 16x16x16 is 8192: 2 rows, 2 columns, 2 steps.
        ("3.6.0/gfx1100/matmul_grouped", "loop@81", 262144, "8 × 8192 × 4 wavefronts = 2·128·32·32"),
        # The epilogue of the pipelined loop: three more dots.
        ("3.6.0/gfx1100/matmul_grouped", "straight", 786432, "24 × 8192 × 4 wavefronts = 3 × 2·128·32·32"),
        # mxf8f6f4 has k = 32: 128/32 = 4 steps of m128n32k32, 262144 each.
        ("3.6.0/sm_100/dot_scaled", "loop@25", 1048576, "4 × 262144 × 1 CTA = 2·128·32·128"),
    ],
)
def test_the_work_of_instructions_is_that_of_the_dots(path: str, region: str, flop: int, words: str) -> None:
    found = identity(path, region)
    assert (found.is_balanced, found.expected, found.actual, found.explanation) == (True, flop, flop, words)


def test_the_warps_of_a_partition_issue_its_instructions_and_not_those_of_the_block() -> None:
    # metadata.num_warps is 12: 4 that load, and two partitions of 4, each a warpgroup with m64n32k16.
    for region in ("loop@18", "loop@18/2"):
        found = identity("3.6.0/sm_90/tma_warp_specialized", region)
        assert found.explanation == "2 × 65536 × 1 warpgroup = 2·64·32·32"


def test_an_unrolled_loop_holds_in_each_of_its_iterations() -> None:
    # 8 v_mfma in the loop of the assembly, 4 for each of two iterations.
    found = identity("3.9.0/gfx942/matmul_grouped", "loop@81")
    assert (found.reason, found.is_balanced) == (BalanceReason.UNROLLED, True)
    assert found.explanation == "8 × 16384 × 4 wavefronts = 2 × 2·128·32·32, in each of 2 iterations"


def test_the_iteration_that_unrolling_leaves_over_is_found_behind_the_loop() -> None:
    # Three dots of the epilogue at 4 v_mfma, and 4 more in the block %.epil.preheader.
    found = identity("3.9.0/gfx942/matmul_grouped", "straight")
    assert (found.reason, found.expected, found.actual) == (BalanceReason.PEELED, 786432, 1048576)
    assert found.explanation == "also contains 1 iteration of loop@81 (remainder of unrolling)"


def test_a_peeled_iteration_is_found_in_the_region_around_the_loop() -> None:
    # LLVM peels the inner loop's first iteration, whose accumulator is zero, into the outer loop.
    found = identity("3.6.0/gfx942/nested_loops", "loop@28")
    assert (found.reason, found.ratio) == (BalanceReason.PEELED, 2.0)
    assert found.explanation == "also contains 1 iteration of loop@30 (peeled)"


def test_a_tile_smaller_than_what_its_warps_cover_is_computed_again_and_again() -> None:
    # warpsPerCTA = [4, 1] and 32x32x4: 8 steps along K of 8192 by each of 4 wavefronts, for 2·32·32·32.
    found = identity("3.6.0/gfx942/matmul_square", "loop@41")
    assert (found.reason, found.is_balanced, found.expected, found.actual) == (
        BalanceReason.REDUNDANT,
        False,
        65536,
        8 * 8192 * 4,
    )
    assert found.explanation == "4×1 warps of 32×32 cover 128×32, but the tile is 32×32: ×4 the work"


def test_of_two_dots_only_the_one_with_the_large_instructions_is_redundant() -> None:
    # 64×32 by 4×1 warps of 32×32 covers 128×32, 64×16 by 4×1 warps of 16×16 exactly 64×16.
    found = identity("3.6.0/gfx942/flash_attention", "loop@47")
    assert found.explanation == "4×1 warps of 32×32 cover 128×32, but the tile is 64×32: ×2 the work"
    assert found.actual == 2 * (2 * 64 * 32 * 16) + 2 * 64 * 16 * 32


def test_a_scalar_dot_shows_no_matrix_instructions_and_says_why() -> None:
    found = identity("3.6.0/sm_75/matmul_grouped", "loop@81")
    assert (found.reason, found.is_balanced, found.actual) == (BalanceReason.SCALAR, None, 0)
    # Each of 128 threads does 128·32·32/128 = 1024 multiply-adds.
    said = generation("3.6.0/sm_75/matmul_grouped", "loop@81")
    assert (said.description, said.reason, said.is_newest) == (
        "MMA 0, FMA 1024",
        "this version of Triton lowers the dots of sm_75 to FMA",
        False,
    )


@pytest.mark.parametrize(
    ("path", "region", "words", "reason"),
    [
        ("3.6.0/sm_80/matmul_grouped", "loop@81", "mma.sync", ""),
        ("3.6.0/sm_90/matmul_grouped", "loop@81", "wgmma", ""),
        ("3.6.0/sm_100/matmul_grouped", "loop@81", "tcgen05.mma", ""),
        ("3.6.0/gfx942/matmul_grouped", "loop@81", "MFMA", ""),
        ("3.6.0/gfx1100/matmul_grouped", "loop@81", "WMMA", ""),
        # A tile of 32×32 in tf32.
        (
            "3.6.0/sm_90/matmul_square",
            "loop@41",
            "mma.sync, where sm_90 has wgmma",
            "wgmma needs at least 64 rows, but the tile has 32",
        ),
        (
            "3.6.0/sm_100/matmul_square",
            "loop@41",
            "mma.sync, where sm_100 has tcgen05.mma",
            "tcgen05.mma needs at least 64 rows, but the tile has 32",
        ),
        # 32·32·32 multiply-adds over 128 threads.
        ("3.6.0/sm_75/matmul_square", "loop@41", "MMA 0, FMA 256", "mma.sync of sm_75 does not multiply f32"),
        ("3.6.0/gfx1100/matmul_square", "loop@41", "MMA 0, FMA 256", "WMMA of gfx1100 does not multiply f32"),
    ],
)
def test_the_generation_is_named_beside_the_newest_of_the_target(
    path: str, region: str, words: str, reason: str
) -> None:
    found = generation(path, region)
    assert (found.description, found.reason) == (words, reason)


def test_the_page_shows_what_the_saved_kernels_have() -> None:
    page = (ROOT / "docs" / "matrix-work.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:sm_|gfx)\w+) \| `([\w.]+)` (\w+) \| (\d+) \| (\d+) \| (\d+) (\w+) \|$", page, re.M)
    assert len(rows) == 6
    for target, op, shape, count, flop, issuers, issuer in rows:
        (only,) = check(f"3.6.0/{target}/matmul_grouped")
        (work,) = only.works["loop@81"]
        assert work.matrix is not None
        said = (work.op, work.matrix.shape, work.count, work.matrix.flop, work.issuers, work.matrix.issuer)
        assert said == (op, shape, int(count), int(flop), int(issuers), issuer.removesuffix("s"))


def test_every_reason_is_on_the_page() -> None:
    page = (ROOT / "docs" / "matrix-work.md").read_text(encoding="utf-8")
    assert {reason.value for reason in BalanceReason} <= set(re.findall(r"^\| `(\w+)` \|", page, re.M))

"""mbarriers, tensor copies and matrix products: planted errors are named with kind and line, right kernels are clean."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from memory_cases import check_cache, check_rewritten, run_command

from artifact_inspector.execution.sass.warpgroup_products import operand_units
from artifact_inspector.memory_checks.mbarriers import Mbarriers, describe_pending
from artifact_inspector.memory_checks.problems import Check
from artifact_inspector.memory_checks.shared_state import AsyncKind, SharedState

PROGRAM = Path(__file__).parents[1] / "cases" / "async_errors.py"
ALL, FIRST, SECOND = np.arange(64), np.array([0]), np.array([1])


def _kinds(state: SharedState) -> set[Check]:
    return {check for check, _, _ in state.hazards}


def _unit(agent: int) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    return np.array([0]), np.array([0]), 16, np.array([agent])


# ── mbarriers ────────────────────────────────────────────────────────────────────────────────────


def test_a_phase_completes_with_its_last_arrival_and_byte() -> None:
    barriers = Mbarriers(SharedState(64, 32))
    barriers.initialize(0, 64, 2, 0)
    barrier = barriers.barriers[64]
    assert [barrier.is_complete(parity) for parity in (0, 1)] == [False, True]
    barriers.arrive(1, 64, 0, 1, 16)
    barriers.arrive(1, 64, 1, 1, 0)
    assert not barrier.is_complete(0)
    assert describe_pending(barrier, 64).endswith("0 of 2 arrivals and 16 bytes of copies are missing")
    barriers.copy(2, 64, 0, 16)
    assert [barrier.is_complete(parity) for parity in (0, 1)] == [True, False]
    assert (barrier.phase, barrier.pending, barriers.errors) == (1, 2, {})


@pytest.mark.parametrize("waits", [True, False])
def test_a_copy_is_visible_to_warps_that_wait_for_its_mbarrier(waits: bool) -> None:
    state = SharedState(64, 32)
    barriers = Mbarriers(state)
    barriers.initialize(0, 64, 1, 0)
    barriers.arrive(1, 64, 0, 1, 16)
    agent = barriers.copy(2, 64, 0, 16)
    assert agent is not None
    state.store(2, *_unit(agent))
    if waits:
        barriers.wait(64, SECOND)
    state.load(3, np.array([32]), np.array([0]), 4)
    assert _kinds(state) == (set() if waits else {Check.UNAWAITED_COPY})
    state.load(4, np.array([0]), np.array([0]), 4)  # the other warp has not waited
    assert _kinds(state) == ({Check.SHARED_RACE} if waits else {Check.UNAWAITED_COPY})


def test_wrong_uses_of_an_mbarrier_are_errors() -> None:
    barriers = Mbarriers(SharedState(64, 32))
    barriers.arrive(1, 64, 0, 1, 0)
    barriers.initialize(2, 64, 1, 0)
    barriers.initialize(3, 64, 1, 0)
    barriers.arrive(4, 64, 0, 2, 0)
    barriers.invalidate(5, 64, 0)
    barriers.invalidate(6, 64, 0)
    assert [step for step, _ in barriers.errors] == [1, 3, 4, 6]


# ── Products and fences ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("waits", [True, False])
def test_an_operand_is_overwritten_only_after_its_product(waits: bool) -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * ALL, 4)
    state.fence(FIRST)
    state.load(1, *_unit(state.enqueue("gsb0", AsyncKind.PRODUCT, FIRST)))
    state.commit("gsb0", FIRST)
    if waits:
        state.wait("gsb0", FIRST, 0)
    state.store(2, np.arange(32), 4 * np.arange(32), 4)
    assert _kinds(state) == (set() if waits else {Check.OPERAND_IN_USE})


@pytest.mark.parametrize(
    ("order", "expected"),
    [("fence store", {Check.MISSING_FENCE}), ("store fence", set()), ("store", {Check.MISSING_FENCE})],
)
def test_a_product_reads_a_store_only_after_a_fence(order: str, expected: set[Check]) -> None:
    state = SharedState(64, 32)
    for action in order.split():
        if action == "fence":
            state.fence(FIRST)
        else:
            state.store(0, np.arange(32), 4 * np.arange(32), 4)
    state.load(1, *_unit(state.enqueue("gsb0", AsyncKind.PRODUCT, FIRST)))
    assert _kinds(state) == expected


def test_a_product_reads_a_finished_copy_without_a_fence() -> None:
    state = SharedState(128, 32)
    agent = state.enqueue("SB0", AsyncKind.COPY, FIRST)
    state.store(0, np.arange(4), 16 * np.arange(4), 16, np.full(4, agent))
    state.commit("SB0", FIRST)
    state.wait("SB0", FIRST, 0)
    state.load(1, np.arange(4), 16 * np.arange(4), 16, np.full(4, state.enqueue("gsb0", AsyncKind.PRODUCT, FIRST)))
    assert _kinds(state) == set()


def test_a_result_is_read_only_after_the_commit_of_its_product() -> None:
    state = SharedState(64, 32)
    barriers = Mbarriers(state)
    barriers.initialize(0, 64, 1, 0)
    for step in (1, 2):  # products run in order
        agent = state.enqueue("tensor memory", AsyncKind.PRODUCT, FIRST)
        state.store(step, *_unit(agent))
        if step == 1:
            barriers.commit(3, 64, 0, agent)
            barriers.wait(64, FIRST)
            state.load(4, np.array([0]), np.array([0]), 4)
            assert _kinds(state) == set()
    state.load(5, np.array([0]), np.array([0]), 4)
    assert _kinds(state) == {Check.UNAWAITED_PRODUCT}


@pytest.mark.parametrize("is_blackwell", [True, False])
@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("rows", [64, 256])
def test_the_steps_in_k_read_each_unit_of_a_tile_once(width: int, rows: int, is_blackwell: bool) -> None:
    """A tile of `width` bytes in K, and the same tile with M contiguous, which has 16 rows of K a step."""
    modes = {32: 6, 64: 4, 128: 2}
    mode = modes[width] if is_blackwell else {32: 3, 64: 2, 128: 1}[width] << 1
    start = 1 << 14
    tile = np.arange(start, start + rows * width, 16)
    strides = (8 * width >> 4) << 32
    steps = [
        operand_units(mode << 61 | strides | start + 32 * k >> 4, rows, is_transposed=False, is_blackwell=is_blackwell)
        for k in range(width // 32)
    ]
    assert np.array_equal(np.sort(np.concatenate(steps)), tile)
    columns = width // 2  # elements of M in a row
    leading = 64 * width >> 4  # 64 rows of K, then the next elements of M
    steps = [
        operand_units(
            mode << 61 | strides | leading << 16 | start + 16 * k * width >> 4,
            rows, is_transposed=True, is_blackwell=is_blackwell,
        )
        for k in range(4)
    ]  # fmt: skip
    expected = np.arange(start, start + 64 * width * rows // columns, 16)
    assert np.array_equal(np.sort(np.concatenate(steps)), expected)


# ── Kernels ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", params=["sm_90", pytest.param("sm_100", marks=pytest.mark.exhaustive)])
def captured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    cache = tmp_path_factory.mktemp(request.param) / "cache"
    option = ["--blackwell"] if request.param == "sm_100" else []
    ran = run_command("-t", request.param, "--keep", str(cache), "--", "python", str(PROGRAM), *option)
    assert ran.returncode == 1, ran.stderr
    return request.param, cache


@pytest.mark.long
def test_planted_errors_are_found_with_kind_and_line(captured: tuple[str, Path]) -> None:
    target, cache = captured
    other = "wgmma" if target == "sm_100" else "tcgen05"
    expected, kernel = set(), ""
    for number, text in enumerate(PROGRAM.read_text().splitlines(), 1):
        kernel = match[1] if (match := re.match(r"def (\w+)", text)) else kernel
        if "# BUG " in text and kernel != other:
            kind = text.partition("# BUG ")[2]
            line = number - (kind == "deadlock")  # ptxas counts the first try of a wait to the statement before it
            expected.add((kernel, kind, f"async_errors.py:{line}"))
    reports = check_cache(cache)
    assert {(r.kernel, p.check.value, p.site.source) for r in reports for p in r.problems} == expected
    assert all(report.undecided == () for report in reports)
    assert sum(report.status == "clean" for report in reports) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("kernel", "pattern", "expected"),
    [
        ("fenced_store", r"FENCE\.VIEW\.ASYNC[^;]*", {Check.MISSING_FENCE}),
        ("awaited_load", r"(@!?U?P\d )?SYNCS\.EXCH[^;]*", {Check.MBARRIER}),
        ("awaited_load", r"(@!?U?P\d )?SYNCS\.ARRIVE[^;]*", {Check.DEADLOCK}),
        ("awaited_load", r"(@!?U?P\d )?UTMALDG[^;]*", {Check.DEADLOCK}),
        ("wgmma", r"UMOV UR\d+, 0x40000040", {Check.UNINITIALIZED_REGISTER}),
        ("wgmma", r"WARPGROUP\.DEPBAR[^;]*", {Check.OPERAND_IN_USE}),
        ("tcgen05", r"(@!?U?P\d )?UTCBAR[^;]*", {Check.DEADLOCK}),
    ],
)
def test_a_removed_instruction_is_found(
    captured: tuple[str, Path], tmp_path: Path, kernel: str, pattern: str, expected: set[Check]
) -> None:
    target, cache = captured
    if kernel == ("wgmma" if target == "sm_100" else "tcgen05"):
        pytest.skip("the target has no such product")
    (report,) = check_rewritten(cache, kernel, tmp_path, pattern, "sass")
    assert expected <= {problem.check for problem in report.problems}, report
    assert all(problem.site.source is not None for problem in report.problems)

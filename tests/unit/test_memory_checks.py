"""Memory errors: each planted one is found with its kind and line, and the nearest kernel without it is clean."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from artifact_inspector.api.launches import pair_launches, recorded_launches
from artifact_inspector.api.memory_errors import check_launches, overall_status, undecided_report
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.memory_checks.coverage import describe_coverage
from artifact_inspector.memory_checks.problems import Check, MemoryReport
from artifact_inspector.memory_checks.shared_state import SharedState

PROGRAM = Path(__file__).parents[1] / "cases" / "memory_errors.py"
TARGETS = ("sm_80", "sm_90", "gfx942")
BUG_LINES = {
    match[1]: (match[2], line)
    for line, text in enumerate(PROGRAM.read_text().splitlines(), 1)
    for name in [re.findall(r"def (\w+)", "\n".join(PROGRAM.read_text().splitlines()[:line]))[-1:]]
    if (match := re.match(r"(\w+) (.*)", f"{name[0] if name else ''} {text.partition('# BUG ')[2]}")) and match[2]
}
"""Kernel → kind and line of its planted error."""
LAUNCH_BUGS = ("wrapped_offset",)
"""Kernels whose error depends on the launch; the program launches them without it."""
NVIDIA_ONLY = ("falsely_aligned_rows", "unawaited_copy", "wrong_buffer")


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "artifact_inspector", "check-memory", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The cache of a target, made by the command itself."""
    caches: dict[str, Path] = {}

    def capture(target: str) -> Path:
        if target not in caches:
            caches[target] = tmp_path_factory.mktemp(target) / "cache"
            option = [] if target.startswith("gfx") else ["--async"]
            ran = run_command(
                "-t", target, "--keep", str(caches[target]), "--json", "--", sys.executable, str(PROGRAM), *option
            )
            assert ran.returncode == 1, ran.stderr
            assert json.loads(ran.stdout)["status"] == "error"
        return caches[target]

    return capture


def check_cache(path: Path, name: str | None = None, change: Callable[[LaunchRequest], LaunchRequest] | None = None):
    opened = open_cache(path)
    requests = [change(request) if change else request for request in recorded_launches(opened, name)]
    pairs = pair_launches(opened, name, (), requests)
    return check_launches(pairs, make_disassembler([entry for entry, _ in pairs], None, sass=True))


@pytest.mark.parametrize("target", ["sm_80", *(pytest.param(name, marks=pytest.mark.long) for name in TARGETS[1:])])
def test_each_planted_error_is_found_with_its_kind_and_line(captured: Callable[[str], Path], target: str) -> None:
    reports = check_cache(captured(target))
    found = {
        (report.kernel, problem.check.value, problem.site.source) for report in reports for problem in report.problems
    }
    is_amd = target.startswith("gfx")
    expected = {
        (kernel, kind, f"memory_errors.py:{line}")
        for kernel, (kind, line) in BUG_LINES.items()
        if kernel not in LAUNCH_BUGS and not (is_amd and kernel in NVIDIA_ONLY)
    }
    assert expected <= found
    others = {row for row in found - expected if row[0] != "matmul"}
    assert others == set()
    coverage = [problem.message for report in reports if report.kernel == "matmul" for problem in report.problems]
    assert coverage == ["c_ptr: 12.5 % written, 4 of 32 tiles, each element once"]
    undecided = {report.kernel for report in reports if report.undecided}
    assert undecided == ({"matmul"} if target == "sm_90" else set())  # warpgroup products


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_an_offset_that_wraps_is_found_in_a_tensor_of_that_size(captured: Callable[[str], Path], target: str) -> None:
    arguments = {"x_ptr": {"shape": [70_001, 32_768], "dtype": "float32"}, "row": 70_000, "stride": 32_768}

    def with_large_tensor(request: LaunchRequest) -> LaunchRequest:
        (changed,) = parse_document_of({"grid": [1], "args": arguments}, "the test")
        return LaunchRequest(request.grid, {**request.arguments, **changed.arguments}, request.kernel_hash)

    (report,) = check_cache(captured(target), "wrapped_offset", with_large_tensor)
    assert [problem.check for problem in report.problems] == [Check.OVERFLOW]
    assert report.problems[0].site.source == f"memory_errors.py:{BUG_LINES['wrapped_offset'][1]}"
    assert "element 2,293,760,000 of x_ptr" in report.problems[0].message


def test_the_missing_mask_is_suggested_by_the_name_of_its_bound(captured: Callable[[str], Path]) -> None:
    (report,) = check_cache(captured("sm_80"), "add_without_mask")
    (problem,) = report.problems
    assert (problem.cta, problem.thread, problem.lanes, problem.tensor) == (
        3,
        116,
        12,
        "x_ptr",
    )  # 24 elements, 2 a lane
    assert problem.suggestion == "The index is 1,000, the extent 1,000. The mask `index < n` is missing."


def test_an_unknown_index_is_undecided_and_names_its_tensor(captured: Callable[[str], Path], tmp_path: Path) -> None:
    launch = {"grid": [4], "args": {"x_ptr": {"shape": [100], "dtype": "float32"},
              "index_ptr": {"shape": [1024], "dtype": "int64"}, "out_ptr": {"shape": [1024], "dtype": "float32"}}}  # fmt: skip
    entry = next(entry for entry in open_cache(captured("sm_80")).entries if entry.display_name == "gather")
    file = tmp_path / "launch.json"
    file.write_text(json.dumps({**launch, "hash": entry.hash}))
    ran = run_command(str(captured("sm_80")), entry.hash, "--launch", str(file))
    assert ran.returncode == 3
    assert "address or mask depends on values of index_ptr" in " ".join(ran.stdout.split())
    assert "give the integers of index_ptr in --launch FILE" in " ".join(ran.stdout.split())


def test_exit_codes_and_formats(captured: Callable[[str], Path]) -> None:
    cache = str(captured("sm_80"))
    clean = run_command(cache, "double_in_place")
    assert clean.returncode == 0
    assert clean.stdout.startswith("No memory error in 1 launch.\n")
    assert run_command(cache, "shift_in_place", "--format", "github").stdout.startswith("::error title=shift_in_place")
    sarif = json.loads(run_command(cache, "shift_in_place", "--format", "sarif").stdout)
    assert sarif["runs"][0]["results"][0]["ruleId"] == "memory/race"
    junit = run_command(cache, "shift_in_place", "--format", "junit")
    assert junit.returncode == 1
    assert '<failure type="race"' in junit.stdout
    assert run_command().returncode == 2
    assert run_command(cache, "--", "python", "x.py").returncode == 2


def _without(text: str, pattern: str, replacement: str) -> str:
    changed, count = re.subn(pattern, replacement, text)
    assert count, pattern
    return changed


def _rewritten(captured: Path, kernel: str, destination: Path, pattern: str, suffix: str) -> list[MemoryReport]:
    """The report on a kernel whose machine code lacks some instructions."""
    opened = open_cache(captured)
    entry: Artifact = next(entry for entry in opened.entries if entry.display_name == kernel)
    (request, *_) = recorded_launches(opened, kernel)
    if suffix == "sass":
        disassemble = make_disassembler([entry], None, sass=True)
        assert disassemble is not None
        text = disassemble("cubin", entry.files["cubin"].read_bytes())
        code = _without(text, pattern, "NOP")
    else:
        code = _without(entry.files["amdgcn"].read_text(), pattern, "s_nop 0")
    target = destination / "entry"
    target.mkdir()
    for file in entry.files.values():
        if isinstance(file, Path) and file.suffix not in (".cubin", ".hsaco", ".amdgcn"):
            (target / file.name).write_bytes(file.read_bytes())
    (target / f"{kernel}.{suffix}").write_text(code)
    changed = open_cache(destination).entries[0]
    return check_launches([(changed, request)], None)


BARRIER, WAIT = r"BAR\.SYNC[^;]*", r"DEPBAR\.LE SB0[^;]*"


@pytest.mark.parametrize(
    ("target", "kernel", "pattern", "expected"),
    [
        ("sm_80", "sum_with_atomics", BARRIER, {Check.SHARED_RACE}),
        ("sm_90", "sum_with_atomics", BARRIER, {Check.SHARED_RACE}),
        ("sm_80", "awaited_copy", BARRIER, {Check.SHARED_RACE}),
        ("sm_80", "awaited_copy", WAIT, {Check.UNAWAITED_COPY}),
        ("sm_80", "matmul", BARRIER, {Check.SHARED_RACE}),
        ("sm_80", "matmul", WAIT, {Check.UNAWAITED_COPY}),
        ("gfx942", "sum_with_atomics", r"s_barrier", {Check.SHARED_RACE}),
        ("gfx942", "matmul", r"s_barrier", {Check.SHARED_RACE}),
    ],
)
def test_a_removed_barrier_or_wait_is_found(
    captured: Callable[[str], Path], tmp_path: Path, target: str, kernel: str, pattern: str, expected: set[Check]
) -> None:
    suffix = "amdgcn" if target.startswith("gfx") else "sass"
    (report,) = _rewritten(captured(target), kernel, tmp_path, pattern, suffix)
    assert {problem.check for problem in report.problems} == expected, report
    assert all(problem.other_site is not None for problem in report.problems)


# ── The state of shared memory ───────────────────────────────────────────────────────────────────

ALL = np.arange(64)


def _synchronize(state: SharedState) -> None:
    state.arrive("barrier 0", np.array([0, 1]), 64, 64, waits=True)


def _kinds(state: SharedState) -> set[Check]:
    return {check for check, _, _ in state.hazards}


@pytest.mark.parametrize("is_synchronized", [True, False])
def test_a_barrier_orders_the_store_of_one_warp_and_the_load_of_another(is_synchronized: bool) -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * ALL, 4, is_copy=False, is_atomic=False)
    if is_synchronized:
        _synchronize(state)
    state.load(1, ALL, 4 * ALL[::-1], 4)
    assert _kinds(state) == (set() if is_synchronized else {Check.SHARED_RACE})


@pytest.mark.parametrize("is_synchronized", [True, False])
def test_a_buffer_is_overwritten_only_after_all_warps_have_read_it(is_synchronized: bool) -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * ALL, 4, is_copy=False, is_atomic=False)
    _synchronize(state)
    state.load(1, ALL, 4 * ALL[::-1], 4)
    if is_synchronized:
        _synchronize(state)
    state.store(2, ALL, 4 * ALL, 4, is_copy=True, is_atomic=False)
    assert _kinds(state) == (set() if is_synchronized else {Check.SHARED_RACE})


def test_a_wait_leaves_the_newest_groups_in_flight() -> None:
    state = SharedState(64, 32)
    for stage in range(2):
        state.store(stage, ALL, 256 * stage + 4 * ALL, 4, is_copy=True, is_atomic=False)
        state.commit_copies(ALL)
    state.wait_for_copies(ALL, 1)
    state.load(2, ALL, 4 * ALL, 4)
    assert _kinds(state) == set()
    state.load(3, ALL, 256 + 4 * ALL, 4)
    assert _kinds(state) == {Check.UNAWAITED_COPY}


def test_one_instruction_may_store_a_value_from_several_warps() -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * (ALL % 32), 4, is_copy=False, is_atomic=False)
    state.load(1, ALL, 4 * (ALL % 32), 4)
    assert _kinds(state) == set()


def test_atomics_of_several_warps_do_not_race_but_a_load_does() -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 0 * ALL, 4, is_copy=False, is_atomic=True)
    state.store(1, ALL, 0 * ALL, 4, is_copy=False, is_atomic=True)
    assert _kinds(state) == set()


def test_a_named_barrier_orders_only_its_warps() -> None:
    state = SharedState(96, 32)
    first, second, third = (np.arange(32) + 32 * warp for warp in range(3))
    state.store(0, first, 4 * np.arange(32), 4, is_copy=False, is_atomic=False)
    state.arrive("barrier 1", np.array([0]), 32, 64, waits=False)
    state.arrive("barrier 1", np.array([1]), 32, 64, waits=True)
    state.load(1, second, 4 * np.arange(32), 4)
    assert _kinds(state) == set()
    state.load(2, third, 4 * np.arange(32), 4)
    assert _kinds(state) == {Check.SHARED_RACE}


def test_the_overall_status_is_the_worst_one() -> None:
    undecided = undecided_report("k", "sm_80", "no launch")
    clean = MemoryReport("k", "", "sm_80", (1, 1, 1), (), (), ())
    assert overall_status([clean]) == "clean"
    assert overall_status([clean, undecided]) == "undecided"
    assert overall_status([]) == "undecided"


REFERENCE_SIZES = {
    "attention_backward": {"heads": 2, "seq_len": 256}, "flash_attention": {"heads": 2, "seq_len": 256},
    "fused_linear": {"m": 256, "n": 256, "k": 256}, "gemv_int4": {"k": 512, "n": 1024},
    "gemv_loads_first": {"k": 512, "n": 1024}, "gemv_splitk": {"k": 512, "n": 1024},
    "histogram": {"length": 1 << 14}, "layer_norm": {"rows": 64}, "linear_scan": {"rows": 64, "length": 256},
    "matmul_descriptor": {"m": 256, "n": 256, "k": 256}, "matmul_grouped": {"m": 256, "n": 256, "k": 256},
    "matmul_persistent": {"m": 256, "n": 256, "k": 256},
    "matmul_persistent_descriptor": {"m": 256, "n": 256, "k": 256}, "matmul_scaled": {"m": 256, "n": 256, "k": 256},
    "matmul_splitk": {"m": 64, "n": 256, "k": 1024}, "matmul_square": {"m": 256, "n": 256, "k": 256},
    "matmul_warp_specialised": {"m": 256, "n": 256, "k": 256}, "softmax": {"rows": 64},
    "grouped_gemm": {"rows": 256, "groups": 2, "n": 256, "k": 256},
}  # fmt: skip
LAUNCH_REFERENCE = "import sys; from artifact_inspector.kernels.{0} import workload; workload(**{1!r}).launch()"


@pytest.mark.long
@pytest.mark.parametrize("kernel", REFERENCE_SIZES)
def test_reference_kernels_are_clean_and_write_each_output_once(kernel: str, tmp_path: Path) -> None:
    program = LAUNCH_REFERENCE.format(kernel, REFERENCE_SIZES[kernel])
    cache = tmp_path / "cache"
    run_command("-t", "sm_80", "--keep", str(cache), "--", sys.executable, "-c", program)
    for report in check_cache(cache):
        assert report.problems == ()
        assert report.undecided == ()
        for row in report.coverage:
            assert describe_coverage(row).startswith(f"{row.tensor}: 100 % written, ")
            assert row.is_written_once or row.is_updated

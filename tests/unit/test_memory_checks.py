"""Memory errors: each planted one is found with its kind and line, and the nearest kernel without it is clean."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memory_cases import LAUNCH_REFERENCE, REFERENCE_SIZES, check_cache, check_rewritten, run_command
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector import cli, compiling
from artifact_inspector.api.launches import pair_launches
from artifact_inspector.api.memory_errors import check_launches, overall_status, undecided_report
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.compiling.ask.running import ProgramRun
from artifact_inspector.execution.interpreter.global_memory import TensorMemory
from artifact_inspector.execution.interpreter.observation import GlobalAccess
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.memory_checks.access_log import AccessLog
from artifact_inspector.memory_checks.coverage import _missing_part, describe_coverage
from artifact_inspector.memory_checks.out_of_bounds import _suggest_mask
from artifact_inspector.memory_checks.problems import Check, MemoryReport, site_of
from artifact_inspector.memory_checks.shared_state import AsyncKind, SharedState
from artifact_inspector.model.location import Frame

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


@pytest.mark.parametrize(
    "target",
    [pytest.param(name, marks=pytest.mark.long if name == "sm_80" else pytest.mark.exhaustive) for name in TARGETS],
)
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
    works = [report.work for report in reports if report.kernel == "matmul" and report.work is not None]
    assert sorted(work.executed_flop / work.expected_flop for work in works) == [0.125, 1.0]
    assert all(report.undecided == () for report in reports)


@pytest.mark.parametrize(
    "target", [pytest.param("sm_80", marks=pytest.mark.long), pytest.param("sm_90", marks=pytest.mark.exhaustive)]
)
def test_an_offset_that_wraps_is_found_in_a_tensor_of_that_size(captured: Callable[[str], Path], target: str) -> None:
    arguments = {"x_ptr": {"shape": [70_001, 32_768], "dtype": "float32"}, "row": 70_000, "stride": 32_768}

    def with_large_tensor(request: LaunchRequest) -> LaunchRequest:
        (changed,) = parse_document_of({"grid": [1], "args": arguments}, "the test")
        return LaunchRequest(request.grid, {**request.arguments, **changed.arguments}, request.kernel_hash)

    (report,) = check_cache(captured(target), "wrapped_offset", with_large_tensor)
    assert [problem.check for problem in report.problems] == [Check.OVERFLOW]
    assert report.problems[0].site.source == f"memory_errors.py:{BUG_LINES['wrapped_offset'][1]}"
    assert "element 2,293,760,000 of x_ptr" in report.problems[0].message


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


BARRIER, WAIT = r"BAR\.SYNC[^;]*", r"DEPBAR\.LE SB0[^;]*"


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "kernel", "pattern", "expected"),
    [
        ("sm_80", "sum_with_atomics", BARRIER, {Check.SHARED_RACE}),
        pytest.param("sm_90", "sum_with_atomics", BARRIER, {Check.SHARED_RACE}, marks=pytest.mark.exhaustive),
        ("sm_80", "awaited_copy", BARRIER, {Check.SHARED_RACE}),
        ("sm_80", "awaited_copy", WAIT, {Check.UNAWAITED_COPY}),
        ("sm_80", "matmul", BARRIER, {Check.SHARED_RACE}),
        ("sm_80", "matmul", WAIT, {Check.UNAWAITED_COPY}),
        pytest.param("gfx942", "sum_with_atomics", r"s_barrier", {Check.SHARED_RACE}, marks=pytest.mark.exhaustive),
        ("gfx942", "matmul", r"s_barrier", {Check.SHARED_RACE}),
    ],
)
def test_a_removed_barrier_or_wait_is_found(
    captured: Callable[[str], Path], tmp_path: Path, target: str, kernel: str, pattern: str, expected: set[Check]
) -> None:
    suffix = "amdgcn" if target.startswith("gfx") else "sass"
    (report,) = check_rewritten(captured(target), kernel, tmp_path, pattern, suffix)
    assert {problem.check for problem in report.problems} == expected, report
    assert all(problem.other_site is not None for problem in report.problems)


@pytest.mark.parametrize(
    ("line", "is_decided"),
    [("", True), ("\tv_mov_b32_e32 v6, v3\n", False), ("\tv_add_f32_e32 v3, v3, v4\n", False)],
    ids=["only expected", "also copied", "changed"],
)
def test_the_first_guess_of_a_compare_and_swap_loop_is_no_race(tmp_path: Path, line: str, is_decided: bool) -> None:
    """An old value makes the swap fail, and it tries again; any other use of the value could see either."""
    cache = tmp_path / "cache"
    shutil.copytree(FIXTURES / "3.2.0" / "gfx90a" / "gemv_splitk", cache)
    (file,) = cache.rglob("*.amdgcn")
    text = re.sub(r"\n(?=\.LBB\d+_\d+:[^\n]*atomicrmw.start)", f"\n{line}", file.read_text())
    file.write_text(text)
    arguments = {"arg0": "fp16[1024]", "arg1": "fp16[1048576]", "arg2": "fp32[1024]", "arg3": 1024}
    requests = parse_document_of({"grid": [4, 4], "args": arguments}, "the test")
    pairs = pair_launches(open_cache(cache), None, (), requests)
    (report,) = check_launches(pairs, make_disassembler([entry for entry, _ in pairs], None, sass=True))
    assert report.status == ("clean" if is_decided else "undecided")


# ── The state of shared memory ───────────────────────────────────────────────────────────────────

ALL = np.arange(64)
WARPS = np.array([0, 1])


def _start_copy(state: SharedState, step: int, first: int) -> None:
    """Each thread copies a word; each warp has its own group."""
    agents = [state.enqueue("SB0", AsyncKind.COPY, WARPS[at : at + 1]) for at in (0, 1)]
    state.store(step, ALL, first + 4 * ALL, 4, np.repeat(agents, 32))


def _synchronize(state: SharedState) -> None:
    state.arrive("barrier 0", np.array([0, 1]), 64, 64, waits=True)


def _kinds(state: SharedState) -> set[Check]:
    return {check for check, _, _ in state.hazards}


@pytest.mark.parametrize("is_synchronized", [True, False])
def test_a_barrier_orders_the_store_of_one_warp_and_the_load_of_another(is_synchronized: bool) -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * ALL, 4)
    if is_synchronized:
        _synchronize(state)
    state.load(1, ALL, 4 * ALL[::-1], 4)
    assert _kinds(state) == (set() if is_synchronized else {Check.SHARED_RACE})


@pytest.mark.parametrize("is_synchronized", [True, False])
def test_a_buffer_is_overwritten_only_after_all_warps_have_read_it(is_synchronized: bool) -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * ALL, 4)
    _synchronize(state)
    state.load(1, ALL, 4 * ALL[::-1], 4)
    if is_synchronized:
        _synchronize(state)
    _start_copy(state, 2, 0)
    assert _kinds(state) == (set() if is_synchronized else {Check.SHARED_RACE})


def test_a_wait_leaves_the_newest_groups_in_flight() -> None:
    state = SharedState(64, 32)
    for stage in range(2):
        _start_copy(state, stage, 256 * stage)
        state.commit("SB0", WARPS)
    state.wait("SB0", WARPS, 1)
    state.load(2, ALL, 4 * ALL, 4)
    assert _kinds(state) == set()
    state.load(3, ALL, 256 + 4 * ALL, 4)
    assert _kinds(state) == {Check.UNAWAITED_COPY}


def test_one_instruction_may_store_a_value_from_several_warps() -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 4 * (ALL % 32), 4)
    state.load(1, ALL, 4 * (ALL % 32), 4)
    assert _kinds(state) == set()


def test_atomics_of_several_warps_do_not_race_but_a_load_does() -> None:
    state = SharedState(64, 32)
    state.store(0, ALL, 0 * ALL, 4, is_atomic=True)
    state.store(1, ALL, 0 * ALL, 4, is_atomic=True)
    assert _kinds(state) == set()


def test_a_named_barrier_orders_only_its_warps() -> None:
    state = SharedState(96, 32)
    first, second, third = (np.arange(32) + 32 * warp for warp in range(3))
    state.store(0, first, 4 * np.arange(32), 4)
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


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(name, marks=pytest.mark.long if name == "softmax" else pytest.mark.exhaustive)
        for name in REFERENCE_SIZES
    ],
)
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


@pytest.mark.parametrize(
    ("stride", "further_lanes", "sentence"),
    [
        (20, 0, "The kernel's stride argument (sx=20) differs from the tensor's stride (16)."),
        (20, 1, "The index of dimension 0 is 6, the extent 6. Its mask lets it through."),
        (16, 0, "The index of dimension 0 is 6, the extent 6. Its mask lets it through."),
        (16, -15, "The index of dimension 1 is 16, the extent 16. Its mask lets it through."),
    ],
)
def test_rows_of_another_stride_are_no_missing_mask(stride: int, further_lanes: int, sentence: str) -> None:
    """Elements at 20 * r + c, r < 6, c < 16, against 6 * 16 of the tensor."""
    outside = sum(20 * r + c >= 96 for r in range(6) for c in range(16))
    region = TensorMemory("x", Tensor((6, 16), "float16", pointer=1024))
    launch = KernelLaunch((1, 1, 1), {"M": 6, "N": 16, "sx": stride})
    assert _suggest_mask(region, region.stop, launch, outside + further_lanes, has_mask=True)[0] == sentence


def test_a_program_that_fails_without_a_kernel_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ProgramRun(parse_target("sm_80"), 2, "", (), (), None)
    monkeypatch.setattr(compiling, "capture_program", lambda *_, **__: [run], raising=False)
    answer = CliRunner().invoke(cli.app, ["check-memory", "-t", "sm_80", "--", "python", "nosuch.py"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "The program exited with status 2 for sm_80." in answer.stderr


def _check_add(launch: dict[str, object]) -> MemoryReport:
    entry = open_cache(FIXTURES / "3.6.0/sm_80/masked_add").entries[0]
    (request,) = parse_document_of(launch, "the launch")
    return check_launches([(entry, request)], make_disassembler([entry], None, sass=True))[0]


def _numbers(shape: list[int], offset: int | None = None) -> dict[str, object]:
    return {"shape": shape, "dtype": "float32", **({} if offset is None else {"storage": 1, "offset": offset})}


@pytest.mark.parametrize(
    ("x", "out", "check"), [(0, 0, None), (0, 4 * 4096, None), (0, 16, Check.RACE), (4 * 4096, 0, None)]
)
def test_tensors_of_one_storage_are_one_memory(x: int, out: int, check: Check | None) -> None:
    arguments = {"x_ptr": _numbers([4096], x), "y_ptr": _numbers([4096]), "out_ptr": _numbers([4096], out), "n": 4096}
    report = _check_add({"grid": [8], "args": arguments})
    assert [problem.check for problem in report.problems] == ([] if check is None else [check])
    assert not report.undecided


INPUTS = ["x_ptr", "y_ptr"]


@pytest.mark.parametrize(
    ("initialized", "shape", "has_error"),
    [(None, [4096], True), (INPUTS, [4096], True), ([*INPUTS, "out_ptr"], [4096], False), (None, [4, 1024], True)],
)
def test_a_part_that_is_not_written_is_an_error_without_values(
    initialized: list[str] | None, shape: list[int], has_error: bool
) -> None:
    arguments = {"x_ptr": _numbers([4096]), "y_ptr": _numbers([4096]), "out_ptr": _numbers(shape), "n": 4096}
    report = _check_add({"grid": [2], "args": arguments, "initialized": initialized})
    assert [problem.check for problem in report.problems] == [Check.COVERAGE] * has_error
    assert report.coverage[0].written_elements == 1024


@pytest.mark.parametrize("initialized", [["x_ptr"], INPUTS])
def test_an_output_that_is_read_before_anything_wrote_it_is_an_error(initialized: list[str]) -> None:
    """In place, the output is the second input."""
    arguments = {name: _numbers([4096], place) for name, place in (("x_ptr", None), ("y_ptr", 0), ("out_ptr", 0))}
    report = _check_add(
        {"grid": [8], "args": {**arguments, "n": 4096}, "initialized": [*initialized, *initialized[1:2]]}
    )
    rows = [(problem.check, problem.site.source) for problem in report.problems]
    assert rows == ([] if "y_ptr" in initialized else [(Check.UNINITIALIZED_TENSOR, "masked_add.py:13")])


def test_a_read_of_an_input_without_values_is_noted() -> None:
    arguments = {name: _numbers([4096]) for name in (*INPUTS, "out_ptr")}
    report = _check_add({"grid": [8], "args": {**arguments, "n": 4096}, "initialized": ["x_ptr"]})
    assert (report.status, report.problems) == ("clean", ())
    assert report.notes[0] == "y_ptr is read, but was created without values and never written"


@pytest.mark.parametrize(
    ("accesses", "reads"),
    [(("load",), True), (("store", "load"), False), (("add",), True), (("exchange", "load"), False)],
)
def test_the_first_access_to_a_tensor_decides_whether_it_is_read_uninitialized(
    accesses: tuple[str, ...], reads: bool
) -> None:
    tensor = Tensor((64,), "float32", pointer=1 << 30, is_initialized=False)
    log = AccessLog(KernelLaunch((1, 1, 1), {"x": tensor}), checks_alignment=True)
    opcodes = {"load": "LDG.E", "store": "STG.E", "add": "RED.E.ADD", "exchange": "ATOMG.E.EXCH"}
    kinds = {"load": "global_load", "store": "global_store"}
    for access in accesses:
        kind, opcode = kinds.get(access, "global_atomic"), opcodes[access]
        step = ProgramStep(0, 0, opcode, opcode, 1, lambda _: None, kind=kind)  # type: ignore[arg-type]
        lanes, cta = (1 << 30) + 4 * np.arange(32)[None], np.array([0])
        log.observe_global(GlobalAccess(step, cta, lanes, None, None, 4, is_write=access != "load"))
    assert list(log.first_reads) == ["x"] * reads


def test_an_error_in_a_helper_is_named_by_its_own_line_and_the_calls() -> None:
    library = Frame("/x/site-packages/triton/language/standard.py", 290, 0)
    chain = (library, Frame("/a/helper.py", 106, 0), Frame("/a/kernel.py", 114, 0))
    step = ProgramStep(0, 0, "LDG.E", "", 7, lambda _: None, location=chain)
    site = site_of(step)
    assert (site.source, site.source_line, site.called_from) == ("helper.py:106", 106, ("kernel.py:114",))
    assert str(site) == "helper.py:106 via kernel.py:114 (LDG.E)"
    assert str(site_of(replace(step, location=None))) == "LDG.E at line 7"


def test_a_kernel_that_leaves_out_a_triangle_selects_what_it_writes() -> None:
    rows = np.arange(8)[:, None]
    columns = rows.T
    patterns: dict[str, tuple[object, str | None]] = {
        "half": (rows < 4, ""),
        "columns": (columns < 6, ""),
        "stairs": (8 * rows + columns < 37, ""),
        "front": (rows > 0, "; index 0 of dimension 0 is missing"),
        "gaps": (columns % 2 == 0, "; index 1 of dimension 1 is missing"),
        "gaps and end": ((columns % 4 < 2) & (rows < 4), "; index 2 of dimension 1 is missing"),
        "every third tile": ((4 * (rows // 2) + columns // 2) % 3 != 1, "; parts between written ones are missing"),
        "triangle": (rows >= columns, None),
        "upper triangle": (rows <= columns, None),
        "band": (abs(rows - columns) < 3, None),
        "diagonal": (rows == columns, None),
        "diagonal blocks, repeated": (rows // 2 % 2 == columns // 4, None),
    }
    for name, (pattern, part) in patterns.items():
        memory = TensorMemory("c", Tensor((8, 8), "fp32", (9, 1), pointer=1 << 20))
        memory.split_granules(4)
        memory.written_marks[: 9 * 8].reshape(8, 9)[:, :8] = pattern
        assert (name, _missing_part(memory, KernelLaunch((1, 1, 1), {}))) == (name, part)


@pytest.mark.parametrize(("arguments", "part"), [({"n": 5}, "; index 6 of dimension 0 is missing"), ({"ld": 8}, None)])
def test_the_padding_of_rows_in_a_flat_tensor_is_no_gap(arguments: dict[str, int], part: str | None) -> None:
    memory = TensorMemory("c", Tensor((64,), "fp32", pointer=1 << 20))
    memory.split_granules(4)
    memory.written_marks[:64].reshape(8, 8)[:, :6] = 1
    assert _missing_part(memory, KernelLaunch((1, 1, 1), arguments)) == part


@pytest.mark.parametrize(("created", "n", "has_error"), [(7, 4096, True), (3, 4096, False), (3, 1024, True)])
def test_parts_that_two_launches_write_are_no_error_of_either(created: int, n: int, has_error: bool) -> None:
    """The second launch writes to the same storage; with equal numbers it is another configuration of the first."""
    entry = open_cache(FIXTURES / "3.6.0/sm_80/masked_add").entries[0]
    arguments = {"x_ptr": _numbers([4096]), "y_ptr": _numbers([4096]), "out_ptr": _numbers([4096])}
    rows = [
        {"grid": [2], "args": {**arguments, "n": size}, "initialized": INPUTS, "created": {"out_ptr": number}}
        for size, number in ((1024, 3), (n, created))
    ]
    pairs = [(entry, request) for request in parse_document_of({"launches": rows}, "the launches")]
    first, _ = check_launches(pairs, make_disassembler([entry], None, sass=True))
    assert [problem.check for problem in first.problems] == [Check.COVERAGE] * has_error
    assert first.notes == (() if has_error else ("coverage of out_ptr: another launch writes to it, too",))


def test_a_part_that_the_program_fills_itself_is_no_error() -> None:
    entry = open_cache(FIXTURES / "3.6.0/sm_80/masked_add").entries[0]
    arguments = {"x_ptr": _numbers([4096]), "y_ptr": _numbers([4096]), "out_ptr": _numbers([4096]), "n": 1024}
    row = {"grid": [2], "args": arguments, "initialized": INPUTS, "created": {"out_ptr": 3}, "filled": ["out_ptr"]}
    pairs = [(entry, request) for request in parse_document_of(row, "the launch")]
    (report,) = check_launches(pairs, make_disassembler([entry], None, sass=True))
    assert (report.problems, report.notes) == ((), ("coverage of out_ptr: the program fills a part of it itself",))


def test_negative_strides_read_no_mark_outside_of_the_tensor() -> None:
    memory = TensorMemory("c", Tensor((8, 8), "fp32", (-9, -1), pointer=1 << 20))
    memory.written_marks[: 9 * 4] = 1
    assert _missing_part(memory, KernelLaunch((1, 1, 1), {})) == ""

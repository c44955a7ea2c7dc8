"""A list of any length: a summary where it is long, every row on one line in a pipe, what was asked for first."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.lazy import with_fields
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.findings import RULES, Finding, Remark
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.kernel_rows import shorten
from artifact_inspector.vocabulary.selection import cost_of, sort_kernels

FIXTURES = Path(__file__).parents[2] / "fixtures"
CACHE = FIXTURES / "3.6.0"
pytestmark = pytest.mark.usefixtures("recalled")


@pytest.fixture(scope="module")
def cache() -> Cache:
    return open_cache(CACHE)


@pytest.fixture(scope="module")
def kernels(cache: Cache) -> list[KernelFacts]:
    return list(inspect_cache(cache, view=CacheReport.view))


def on_a_terminal(report: CacheReport, *, height: int = 30, width: int = 120) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=width, height=height)
    console.print(report, crop=False)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def run(*arguments: str, columns: str | None = None) -> str:
    env = {"COLUMNS": columns} if columns else {}
    result = CliRunner().invoke(cli.app, list(arguments), env={**os.environ, "COLUMNS": "", **env})
    assert result.exit_code == 0, result.stderr
    return result.stdout


def names(text: str) -> list[str]:
    table = text.partition("\nkernel ")[2].partition("\n\n")[0]
    return [line.split()[0] for line in table.splitlines()[1:]]


@pytest.mark.long
def test_many_kernels_begin_with_a_summary_and_fit_two_screens(cache: Cache, kernels: list[KernelFacts]) -> None:
    lines = on_a_terminal(CacheReport(cache, kernels, is_narrowed=False))
    assert len(lines) <= 60
    assert lines[0].startswith(f"{len(kernels)} kernels in ")
    assert lines[2].startswith("worst  register_spill 40eb584c: 2704 bytes per thread spill")
    assert any(line.startswith("targets   gfx942 32") for line in lines)
    assert any(line.startswith("findings  AI0") for line in lines)
    assert any("every kernel with --limit 0" in line for line in lines)


@pytest.mark.long
def test_groups_that_are_left_out_are_counted(cache: Cache, kernels: list[KernelFacts]) -> None:
    lines = on_a_terminal(CacheReport(cache, kernels, is_narrowed=False, limit=5))
    (left,) = [line for line in lines if "Not shown" in line]
    listed = list(dict.fromkeys(kernel.artifact.name for kernel in sort_kernels(kernels, "cost")))[:5]
    rest = sum(kernel.artifact.name not in listed for kernel in kernels)
    assert left == f"Not shown: 27 more names with {rest} kernels"


@pytest.mark.long
def test_zero_lists_every_kernel(cache: Cache, kernels: list[KernelFacts]) -> None:
    lines = on_a_terminal(CacheReport(cache, kernels, is_narrowed=False, limit=0), width=160)
    assert sum(line.startswith("matmul_kernel ") for line in lines) == 10


def test_a_pipe_has_each_kernel_on_one_line_uncut(cache: Cache, kernels: list[KernelFacts]) -> None:
    long = "triton_poi_fused_" + "_".join(["native_layer_norm"] * 12)
    named = [replaced(kernels[0], long), *kernels[1:]]
    out = io.StringIO()
    Console(file=out, width=200).print(CacheReport(cache, named, is_narrowed=False), crop=False)
    lines = out.getvalue().splitlines()
    assert sum(line.startswith(long) for line in lines) == 1
    assert sum("gfx942 " in line for line in lines) == 32


def test_a_long_name_leaves_the_table_as_it_is_on_a_terminal(cache: Cache, kernels: list[KernelFacts]) -> None:
    long = "triton_poi_fused_" + "_".join(["native_layer_norm"] * 12)
    few = [replaced(kernels[0], long), *kernels[1:8]]
    lines = on_a_terminal(CacheReport(cache, few, is_narrowed=False), width=140)
    (row,) = [line for line in lines if line.startswith(shorten(long))]
    assert "gfx" in row
    assert len(shorten(long)) < 45


def replaced(kernel: KernelFacts, name: str) -> KernelFacts:
    return with_fields(kernel, artifact=replace(kernel.artifact, display_name=name))


def test_sorting_puts_what_costs_most_first(kernels: list[KernelFacts]) -> None:
    spills = [kernel.resources.spill_bytes.value for kernel in sort_kernels(kernels, "spills")]
    known = [value for value in spills if value is not None]
    assert spills[: len(known)] == sorted(known, reverse=True)
    assert known[0] == 2704
    assert set(spills[len(known) :]) == {None}
    assert sort_kernels(kernels, "-name")[0].artifact.display_name == "while_loop"


@pytest.mark.long
def test_what_costs_most_comes_first_in_words_with_the_next_command() -> None:
    text = run(str(CACHE), columns="80")
    assert names(text)[:2] == ["register_spill", "register_spill"]
    assert "fma instead of mma +1" in text
    assert "AI0" not in text
    assert "\nnext   inspect-kernel " in text
    assert len(text.split("\n\n")[-1].splitlines()) <= 4
    assert "each round loads after" in run(str(CACHE), "--legend")


def test_a_kernel_that_does_not_fit_precedes_one_that_is_wrong_and_one_that_spills() -> None:
    spills, wrong, fine, large = (
        stand_in(code, spilled) for code, spilled in (("AI007", 8), ("AI025", 0), ("", 0), ("AI013", 0))
    )
    assert [cost_of(kernel) for kernel in (large, wrong, spills, fine)] == sorted(
        cost_of(kernel) for kernel in (fine, spills, large, wrong)
    )


def stand_in(code: str, spilled: int) -> KernelFacts:
    (kernel,) = inspect_cache(open_cache(CACHE / "sm_80" / "copy"))
    rules = {rule.code: rule for rule in RULES}
    findings = tuple(Finding(c, rules[c].name, rules[c].severity, Remark("", None)) for c in [code] if c)
    resources = replace(kernel.resources, spill_bytes=kernel.resources.spill_bytes._replace(value=spilled))
    changed = with_fields(kernel, resources=resources)
    changed.derive("findings", lambda: findings)
    return changed


def test_rows_that_differ_by_their_hash_only_are_folded(tmp_path: Path) -> None:
    (entry,) = open_cache(CACHE / "sm_80" / "copy").entries
    for number in range(3):
        place = tmp_path / f"E{number}"
        place.mkdir()
        for suffix in ("json", "ttir"):
            text = entry.files[suffix].read_text().replace(entry.hash, f"{number}" + entry.hash[1:])
            (place / f"{entry.stem}.{suffix}").write_text(text)
    assert names(run(str(tmp_path))) == ["copy"]
    assert " ×3 " in run(str(tmp_path))
    assert len(names(run(str(tmp_path), "--limit", "0"))) == 3


def test_the_newest_come_first(tmp_path: Path) -> None:
    for at, name in enumerate(("softmax", "copy", "masked_add")):
        (entry,) = open_cache(CACHE / "sm_80" / name).entries
        place = tmp_path / f"E{at}"
        place.mkdir()
        for suffix in ("json", "ttir"):
            (place / f"{entry.stem}.{suffix}").write_bytes(entry.files[suffix].read_bytes())
            os.utime(place / f"{entry.stem}.{suffix}", (at * 100, at * 100))
    assert names(run(str(tmp_path), "--newest")) == ["masked_add", "copy", "softmax_kernel"]
    assert names(run(str(tmp_path), "--sort", "-time")) == ["softmax_kernel", "copy", "masked_add"]


@pytest.mark.parametrize(
    ("option", "word", "expected"),
    [
        ("--finding", "register-spill", {"register_spill"}),
        ("--finding", "AI001", {"causal", "gemv_splitk", "unrolled_rounds"}),
        ("--verdict", "no-compute", {"copy"}),
        ("--severity", "warning", {"register_spill", "while_loop", "masked_add"}),
    ],
)
def test_a_list_holds_those_that_were_asked_for(option: str, word: str, expected: set[str]) -> None:
    found = set(names(run(str(CACHE), option, word)))
    assert expected <= found
    assert "layer_norm_kernel" not in found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--sort", "beauty"), "Expected one of cost, name, time, verdict, spills, occupancy, size."),
        (("--verdict", "fast"), "Expected one of interleaved, clustered"),
        (("--finding", "AI999"), "Expected one of AI001"),
        (("--severity", "fatal"), "Expected warning or note."),
        (("--finding", "AI007", "--verdict", "pipelined"), "None of 115 kernels matches all filters."),
    ],
)
def test_what_there_is_not_cannot_be_asked_for(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(cli.app, [str(CACHE), *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_limit_holds_in_a_pipe_too() -> None:
    text = run(str(CACHE), "--sort", "name", "--limit", "7")
    assert len(names(text)) == 7
    assert "108 more kernels not shown; --limit 0 lists all" in text


@pytest.mark.long
def test_one_long_label_and_one_long_verdict_leave_every_row_on_a_line(cache: Cache) -> None:
    kernels = list(inspect_cache(open_cache(CACHE / "sm_80"), view=CacheReport.view))
    first, *others = (x for x in kernels if x.artifact.name in ("matmul_kernel", "softmax_kernel"))
    long = [
        with_fields(first, artifact=replace(first.artifact, hash=letter * 64, constants=constants))
        for letter, constants in (("a", {"SPLIT_K": 1, "SEQUENCE": 77}), ("b", {"SPLIT_K": 2, "SEQUENCE": 5}))
    ]
    few = replace(cache, entries=tuple(kernel.artifact for kernel in (*long, *others)))
    wide = on_a_terminal(CacheReport(few, [*long, *others], is_narrowed=False), width=160)
    lines = on_a_terminal(CacheReport(few, [*long, *others], is_narrowed=False), width=88)
    assert sum("SPLIT_K=1 SEQUENCE=77" in line for line in wide) == 1
    rows = [line for line in lines if re.match("matmul_kernel|softmax_kernel", line)]
    assert len(rows) == len(long) + len(others)
    assert all(re.search(r"…|softmax", row) and cell_len(row) <= 88 for row in rows)


def test_forms_of_a_kernel_are_told_apart_in_their_rows() -> None:
    text = run(str(CACHE / "sm_80"), columns="190")
    assert "gemv_splitk               1×32 f16 w4 s3" in text
    assert names(text)[0] == "register_spill"
    assert " warps " not in text.partition("\n\n")[2].splitlines()[0]


@pytest.mark.parametrize("word", ["AI003", "ai003", "003", "3", "not-pipelined"])
def test_a_finding_is_asked_for_as_lists_print_it(word: str) -> None:
    assert run("findings", "--explain", word).startswith("AI003 not-pipelined")
    assert "not pipelined" in run(str(CACHE / "sm_80" / "if_inside_loop"), "--finding", word)


COUNT = """
import os, sys
from artifact_inspector.cli import main
called = set()
def note(frame, event, argument):
    code = frame.f_code
    # comprehensions are frames of their own before Python 3.12; a class body is no function
    if event == "call" and code.co_flags & 2 and not code.co_name.endswith(("comp>", "genexpr>")):
        if os.sep + "artifact_inspector" + os.sep in code.co_filename:
            called.add(code)
sys.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    print(len(called), file=sys.stderr)
"""


def test_a_row_of_a_list_calls_few_functions(tmp_path: Path) -> None:
    """Of the package, those that its modules call when they are imported among them: first cold, then warm."""
    # what other tests or a developer set may take functions of its own
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "ARTIFACT_INSPECTOR_INDEX": ""}
    command = [sys.executable, "-c", COUNT, str(FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped")]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    cold, warm = (int(run.stderr.split()[-1]) for run in runs)
    assert 700 < cold <= 1000
    assert 150 < warm <= 290

"""One kernel in all its forms (`comparison.matrix`): what stands in the grid, and in which order."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from math import prod

import pytest
from rich.console import Console
from saved import FIXTURES, Saved, saved_kernels
from typer.testing import CliRunner, Result

from artifact_inspector.cli import app
from artifact_inspector.comparison.matrix import Matrix, Variant, find_matrix, shown_columns
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.lazy import with_fields
from artifact_inspector.model.tile import Tile
from artifact_inspector.report.variant_matrix import MatrixReport

pytestmark = pytest.mark.usefixtures("recalled")
MATMUL = saved_kernels(version="3.6.0", kernel="matmul_grouped")
FLASH = saved_kernels(version="3.6.0", kernel="flash_attention")


def forms(kernels: list[Saved], *sort: str) -> tuple[Variant, ...]:
    return find_matrix([kernel.facts for kernel in kernels], sort).variants


def text(kernels: list[Saved], width: int = 120) -> str:
    return printed(find_matrix([kernel.facts for kernel in kernels]), width)


def printed(matrix: Matrix, width: int) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(MatrixReport(matrix))
    return capture.get()


def table(report: str, heading: str) -> list[str]:
    """The lines under a heading, up to the next empty one."""
    lines = report.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(heading))
    rest = [*lines[start + 1 :], ""]
    return rest[: next(n for n, line in enumerate(rest) if not line.strip())]


# -- figures ---------------------------------------------------------------------------

MMA = re.compile(r"([\d.]+) × \S+ m(\d+)n(\d+)k(\d+) .* by (\d+) (?:warp|wavefront|warpgroup|CTA)s?$")


@pytest.mark.parametrize("kernel", MATMUL, ids=lambda kernel: kernel.target)
def test_matrix_instructions_of_an_iteration_do_the_dot_of_the_program(kernel: Saved) -> None:
    (form,) = forms([kernel])
    if kernel.target == "sm_75":  # without matrix instructions for its layout
        assert form.figures["mma"] == 0
        return
    (words,) = form.summary.facts["loop1.mma"]  # type: ignore[misc]
    found = MMA.fullmatch(words)
    assert found is not None
    count, m, n, k, issuers = map(int, found.groups())
    assert form.figures["mma"] == count
    (dot,) = re.findall(r"dot (\d+)×(\d+)×(\d+)", " ".join(form.summary.tiles or ()))
    assert count * issuers * m * n * k == prod(map(int, dot))


@pytest.mark.parametrize("kernel", [MATMUL[0], MATMUL[-1], FLASH[-1]], ids=lambda kernel: kernel.path)
def test_figures_are_those_of_the_kernel_alone(kernel: Saved) -> None:
    (form,) = forms([kernel])
    (alone,) = json.loads(CliRunner().invoke(app, [str(FIXTURES / kernel.path), "--json"]).stdout)["kernels"]
    resources, last = alone["resources"], list(alone["stages"].values())[-1]
    (loop,) = (region for region in last["regions"] if region["kind"] == "loop")
    assert form.figures["shared"] == resources["shared_bytes"]
    assert form.figures["registers"] == resources["registers"]
    assert form.figures["spills"] == resources["spill_bytes"]
    assert form.figures["occupancy"] == resources["occupancy"]["blocks_per_sm"]
    assert form.figures["instructions"] == last["instructions"]
    assert form.figures["mma"] == loop["matrix"] / loop["unroll_factor"]
    assert form.verdicts["assembly"] == loop["phrase"]


# -- order -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [column.name for column in shown_columns()])
@pytest.mark.parametrize("sign", ["", "-"])
def test_forms_are_sorted_by_any_column_with_what_is_not_known_last(name: str, sign: str) -> None:
    found = [form.figures.get(name) for form in forms(MATMUL, sign + name)]
    known = [value for value in found if value is not None]
    assert known or name == "cas"  # a product has no atomics
    assert known == sorted(known, reverse=sign == "-")  # type: ignore[type-var]
    assert found[: len(known)] == known


def test_a_column_that_some_do_not_know_was_sorted() -> None:
    assert None in [form.figures.get("registers") for form in forms(MATMUL)]


def test_forms_of_one_value_keep_their_order_and_the_next_column_decides() -> None:
    natural = [form.summary.target for form in forms(MATMUL)]
    by_shared = forms(MATMUL, "-shared")
    same = [form.summary.target for form in by_shared if form.figures["shared"] == 30720]
    assert same == [target for target in natural if target in same]
    twice = forms(MATMUL, "-shared", "instructions")
    keys = [(-form.figures["shared"], form.figures["instructions"]) for form in twice]  # type: ignore[operator]
    assert keys == sorted(keys)


def test_targets_stand_in_the_order_of_their_numbers() -> None:
    assert [form.summary.target for form in forms(MATMUL)] == [
        "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "gfx90a", "gfx942", "gfx950", "gfx1100",
    ]  # fmt: skip


def test_tiles_stand_in_the_order_of_their_numbers() -> None:
    (facts,) = (kernel.facts for kernel in MATMUL if kernel.target == "sm_80")
    assert facts.program is not None
    programs = [facts.program._replace(tiles=(Tile(tile),)) for tile in ("load 1024", "load 2048", "load 256")]
    found = find_matrix([with_fields(facts, program=program) for program in programs])
    assert [form.configuration[0].split()[-1] for form in found.variants] == ["256", "1024", "2048"]
    lines = printed(found, 120).splitlines()
    assert [line.split()[0] for line in lines if " f16 w4 s4 " in line] == ["256", "1024", "2048"] * 2


def test_a_long_label_is_cut_and_no_figure_is() -> None:
    (facts,) = (kernel.facts for kernel in MATMUL if kernel.target == "sm_80")
    constants = [{"SPLIT_K": split, "SEQUENCE_LENGTH": 2048 * split} for split in (1, 2)]
    found = find_matrix(
        with_fields(facts, artifact=replace(facts.artifact, constants=one, hash=str(one["SPLIT_K"]) * 64))
        for one in constants
    )
    (wide,), (narrow,) = (
        [line for line in printed(found, width).splitlines() if line.endswith("11111111")] for width in (160, 100)
    )
    assert wide.startswith("128×32×32 f16 w4 s4 SPLIT_K=1 SEQUENCE_LENGTH=2048 ")
    assert narrow.partition("… ")[2].split() == wide.partition("2048 ")[2].split() != []


def test_the_order_of_a_cache_is_of_no_account() -> None:
    assert [form.summary for form in forms(MATMUL[::-1])] == [form.summary for form in forms(MATMUL)]


@pytest.mark.parametrize("word", ["verdict", "target", "-triton", "warps", "-stages"])
def test_what_is_no_figure_sorts_too(word: str) -> None:
    assert Counter(form.summary.target for form in forms(MATMUL, word)) == Counter(
        form.summary.target for form in forms(MATMUL)
    )


# -- the grid --------------------------------------------------------------------------


def test_targets_with_the_same_answer_share_a_line() -> None:
    lines = table(text(MATMUL), "target  ")
    assert len(lines) == len({tuple(form.verdicts.items()) for form in forms(MATMUL)}) == 2
    targets = [word.strip(",") for line in lines for word in line.split() if re.match(r"sm_|gfx", word)]
    assert sorted(targets) == sorted(kernel.target for kernel in MATMUL)
    (shared,) = (line for line in lines if "gfx942" in line)
    assert "sm_80" in shared
    assert "sm_75" not in shared


def test_versions_stand_on_lines_of_their_own_where_there_are_several() -> None:
    kernels = saved_kernels(kernel="gemv_splitk", target="gfx942")
    lines = table(text(kernels), "Triton")
    assert len(lines) == len(kernels)
    (reordered,) = (line for line in lines if line.startswith("3.2"))
    assert reordered.split()[2:] == ["interleaved", "clustered", "clustered", "clustered"]
    assert all("clustered" not in line for line in lines if line is not reordered)


def test_each_form_has_a_row_with_its_hash() -> None:
    rows = "\n".join(table(text(MATMUL), "target  shared"))
    for kernel in MATMUL:
        assert len(re.findall(rf"\b{kernel.artifact.hash[:8]}\b", rows)) == 1


def test_what_is_not_known_is_told_from_what_does_not_apply() -> None:
    rows = {row.split()[0]: row.split() for row in table(text(MATMUL), "target  shared")}
    assert rows["sm_75"][2:6] == ["?", "?", "–", "–"]  # no binary; no copies to wait for
    assert rows["sm_80"][1:8] == ["30720", "95", "0", "4", "2", "16", "30720"]


# -- what is refused -------------------------------------------------------------------


def test_kernels_of_several_names_are_refused_with_the_names() -> None:
    with pytest.raises(UsageError) as raised:
        forms([MATMUL[0], FLASH[0]])
    assert raised.value.message == "2 kernels match, but a matrix shows one."
    for kernel in (MATMUL[0], FLASH[0]):
        assert kernel.artifact.display_name in (raised.value.remedy or "")


def test_no_kernel_is_refused() -> None:
    with pytest.raises(UsageError, match="0 kernels match, but a matrix shows one"):
        forms([])


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["matrix", *arguments])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["3.6.0/sm_80"], 2, "kernels match, but a matrix shows one."),
        (["3.6.0/sm_80", "matmul_kernel", "--sort", "beauty"], 2, "Unknown column 'beauty' for --sort."),
        (["3.6.0/sm_80", "nothing"], 2, "'nothing'"),
        (["nowhere", "matmul_kernel"], 3, "nowhere"),
    ],
)
def test_what_cannot_be_shown_is_said_with_its_exit_code(
    arguments: list[str], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FIXTURES)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in " ".join(result.stderr.split())


def test_the_document_holds_the_forms_in_the_order_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    result = run("3.2.0", "gemv_splitk", "--sort", "-instructions", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["document"], document["name"]) == ("matrix", "gemv_splitk")
    counts = [form["figures"]["instructions"] for form in document["variants"]]
    assert counts == sorted(counts, reverse=True)
    assert len({form["kernel"]["target"] for form in document["variants"]}) == len(counts) == 3


def test_the_variant_that_costs_most_comes_before_the_table_with_the_command_that_explains_it() -> None:
    report = text(MATMUL)
    worst, command = report.split("\n\n")[1].rsplit("\n", 1)
    scalar = next(kernel for kernel in MATMUL if kernel.target == "sm_75")
    assert worst.startswith(f"worst  matmul_kernel {scalar.facts.artifact.hash[:8]}: ")
    assert "FMA" in worst
    assert command == f"next   inspect-kernel . {scalar.facts.artifact.hash[:8]}"

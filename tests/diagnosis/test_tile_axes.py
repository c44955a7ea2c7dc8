"""Which constants size tiles, by the source, and what happens to a constant that only looks like one."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import held_out_pairs
import pairs
import pytest

from artifact_inspector.api.equal_results import compare_results
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.changes import changed_grid, propose_changes
from artifact_inspector.diagnosis.diagnose import diagnose
from artifact_inspector.diagnosis.tile_axes import find_tile_axes, find_whole_extents, scale_grid
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of

SOURCE = held_out_pairs.FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kernel", "axes"),
    [
        ("rotate_tokens", {"TOKENS": (0,)}),
        ("embed_patches", {"BM": (1,), "BN": (0,)}),
        ("awq_gemm", {"BM": (0,), "BN": (1,)}),
        # the row that a CTA reduces has the same form of offsets
        ("log_softmax", {}),
        ("classify_pixels", {}),
        ("classify_tile", {"BP": (0,)}),
        # heads of D elements are no tiles: the product has a third factor
        ("window_attention", {"BM": (0,)}),
    ],
)
def test_a_constant_sizes_a_tile_where_offsets_say_so(kernel: str, axes: dict[str, tuple[int, ...]]) -> None:
    assert find_tile_axes(SOURCE, kernel) == axes


@pytest.mark.long
def test_every_tile_of_the_planted_kernels_is_an_argument() -> None:
    for function in ast.parse(SOURCE).body:
        if isinstance(function, ast.FunctionDef):
            assert set(find_tile_axes(SOURCE, function.name)) <= {one.arg for one in function.args.args}


def test_a_tile_of_any_name_is_tried_and_scales_its_axis() -> None:
    changes = propose_changes([CauseKind.EXCESS_THREADS], {"num_warps": 4}, {"TOKENS": 1, "HALF": 16}, 32, ["TOKENS"])
    assert {"TOKENS": 8} in changes
    assert all("HALF" not in change for change in changes)
    request = LaunchRequest((1000, 3, 1), {})
    assert changed_grid(request, {"TOKENS": 1}, {"TOKENS": 8}) is None
    assert changed_grid(request, {"TOKENS": 1}, {"TOKENS": 8}, {"TOKENS": (0,)}) == (125, 3, 1)
    # one constant for both sides of a square tile
    assert scale_grid((4, 4), {"B": (0, 1)}, {"B": 64}, {"B": 32}) == (8, 8)


@pytest.mark.exhaustive
def test_other_tiles_give_equal_results_and_other_rows_do_not() -> None:
    def compare(variant: pairs.Variant, tiles: dict[str, tuple[int, tuple[int, ...]]]) -> bool | None:
        (request,) = parse_document_of({"grid": variant.grid, "args": variant.arguments}, variant.kernel)
        files = held_out_pairs.FILE, held_out_pairs.FILE
        directory = Path(held_out_pairs.FILE).parent
        return compare_results(files, variant.kernel, request, variant.constants, directory, 2.0**-16, tiles)

    tokens = held_out_pairs.rotated(1, 4)
    few = {name: pairs.tensor("fp32", 64, one["shape"][1]) for name, one in tokens.arguments.items()}
    assert compare(replace(tokens, arguments=few, grid=[64, 1, 1]), {"TOKENS": (8, (0,))}) is True
    rows = held_out_pairs.long_rows(4096, 4)
    few = {name: pairs.tensor("fp32", 64, 4096) for name in rows.arguments}
    assert compare(replace(rows, arguments=few, grid=[64, 1, 1]), {"N": (2048, (0,))}) is False


def test_a_constant_that_nothing_steps_by_covers_a_whole_row() -> None:
    source = """
@triton.jit
def attention(q, k, stride, length, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_D)
    sums = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for start in range(0, length, BLOCK_N):
        keys = tl.load(k + (start + tl.arange(0, BLOCK_N))[:, None] * stride + columns[None, :])
"""
    assert find_whole_extents(source, "attention") == {"BLOCK_D"}
    assert find_whole_extents(source, "another") == frozenset()


@pytest.mark.long
def test_a_tile_is_not_too_small_where_each_element_is_used_once(tmp_path: Path) -> None:
    """Sixteen rows times a matrix: only the rows, 11 % of the requested bytes, would be read less often."""
    plant = pairs.gemm(shape=(16, 32768, 1024), tile=(16, 128, 32), warps=4, stages=2)
    (candidate,) = pairs.compile_variants([plant], "sm_90", tmp_path)
    diagnosis = diagnose(candidate, make_disassembler([candidate.artifact], None, sass=True))
    assert not [cause.text for cause in diagnosis.causes if "reuses each loaded element too little" in cause.text]

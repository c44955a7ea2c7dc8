"""The launch that is assumed for a kernel: its grid covers the masks, and every access stays inside."""

from __future__ import annotations

import math
from pathlib import Path

import blind_pairs
import pairs
import pytest
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.diagnosis.assumed_launch import assume_launch
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.timing.sampling import sample_launch
from artifact_inspector.files.cache import open_cache

NAMES = ("bmm-tile", "conv", "embedding", "gemv-w4", "pixels")


@pytest.mark.long
@pytest.mark.parametrize("name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[1:])])
def test_no_sampled_access_leaves_its_tensor(name: str, tmp_path: Path) -> None:
    plant = blind_pairs.PAIRS[name][1]
    (candidate,) = pairs.compile_variants([plant], "sm_90", tmp_path, blind_pairs.FILE)
    request = assume_launch(candidate.artifact)
    disassemble = make_disassembler([candidate.artifact], None, sass=True)
    loaded, launch = match_launch(load_kernel(candidate.artifact, disassemble), request, candidate.constants)
    sample = sample_launch(loaded, launch)
    assert not sample.counters.missing_inputs
    assert not sample.counters.out_of_bounds
    assert not sample.unfinished
    assert request.notes[0].startswith("no launch is recorded: assumed grid ")
    assert math.prod(int(extent) for extent in request.grid) >= 132


@pytest.mark.exhaustive
def test_sizes_follow_from_masks_loops_and_strides(tmp_path: Path) -> None:
    plants = [blind_pairs.PAIRS[name][1] for name in ("pixels", "skinny", "lists")]
    pixels, skinny, lists = (
        assume_launch(one.artifact) for one in pairs.compile_variants(plants, "sm_90", tmp_path, blind_pairs.FILE)
    )
    n = pixels.arguments["n"]
    assert pixels.grid == (n // 1024, 1, 1)
    assert pixels.arguments["x_ptr"].shape == (4 * n - 3,)
    assert pixels.arguments["y_ptr"].shape == (n,)
    # the inner extent of each operand
    assert skinny.arguments["stride_xm"] == skinny.arguments["K"]
    assert skinny.arguments["stride_wk"] == skinny.grid[0] * 128
    # stores do not depend on the second axis: it splits K, here not at all
    assert skinny.grid[1] == 1
    nodes = lists.arguments["next_ptr"]
    assert isinstance(nodes, Tensor)
    assert nodes.values is not None
    assert 0 <= min(nodes.values.elements) <= max(nodes.values.elements) < nodes.shape[0]  # type: ignore[union-attr]


FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    ("directory", "grid", "numbers"),
    [
        # 32 by 128 tiles, whose rows of tiles an id is divided into
        ("3.6.0/sm_80/matmul_grouped", 4096, {"M": 4096, "N": 4096, "K": 4096}),
        # one row of 1024 columns for each CTA: the extent grows until the grid is full
        ("3.6.0/sm_80/unaligned_columns", 512, {"rows": 128, "cols": 512 * 1024}),
        # the divisor of a tile's number is the count of tiles, not an extent
        ("3.6.0/sm_80/persistent_matmul", 4096, {"M": 4096, "N": 4096, "K": 4096}),
    ],
)
def test_a_grid_without_launch_is_full(directory: str, grid: int, numbers: dict[str, int]) -> None:
    (entry,) = open_cache(FIXTURES / directory).entries
    request = assume_launch(entry)
    assert request.grid == (grid, 1, 1)
    assert {name: request.arguments[name] for name in numbers} == numbers


def test_every_fixture_fills_a_gpu() -> None:
    cache = open_cache(FIXTURES)
    grids = {f"{one.target} {one.directory}": assume_launch(one).grid for one in cache.entries if one.files.get("ttir")}
    assert len(grids) > 100
    assert not {name: grid for name, grid in grids.items() if math.prod(int(extent) for extent in grid) < 256}


@pytest.mark.long
def test_a_derived_type_is_that_of_the_assumed_launch(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    text = """
import triton
import triton.language as tl


@triton.jit
def rows(x_ptr, y_ptr, M, N, stride_m, stride_n, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BN)
    mask = (r[:, None] < M) & (c[None, :] < N)
    x = tl.load(x_ptr + r[:, None] * stride_m + c[None, :] * stride_n, mask=mask)
    tl.store(y_ptr + r[:, None] * stride_m + c[None, :] * stride_n, x + 1, mask=mask)
"""
    file.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["advise", f"{file}:rows", "--const", "BM=16,BN=64", "--budget", "0"])
    assert done.exit_code == 0
    # a stride of 1 is a constant, as Triton makes it, so that accesses are wide
    assert "stride_m=i32:16,stride_n=1 " in done.stderr
    assert "each thread accesses" not in done.stdout

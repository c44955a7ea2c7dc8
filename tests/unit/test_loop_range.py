"""How often a loop runs, where the program has its bounds as constants."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.analysis.flow.loop_range import LoopRange
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model import Stage
from artifact_inspector.report.region_work import describe_work
from artifact_inspector.vocabulary.rows import summarise

LOOP = """module {{
  tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32 loc("k.py":3:1)
    %c32 = arith.constant 32 : i32 loc("k.py":3:1)
    %c64 = arith.constant {stop} : i32 loc("k.py":3:1)
    %zero = arith.constant 0.0 : f32 loc("k.py":3:1)
    %s = scf.for %k = %c0 to {bound} step %c32 iter_args(%a = %zero) -> (f32)  : i32 {{
      %q = tt.addptr %p, %k : !tt.ptr<f32>, i32 loc("k.py":5:1)
      %x = tt.load %q : !tt.ptr<f32> loc("k.py":5:1)
      %y = arith.addf %a, %x : f32 loc("k.py":6:1)
      scf.yield %y : f32 loc("k.py":6:1)
    }} loc("k.py":4:1)
    tt.store %p, %s : !tt.ptr<f32> loc("k.py":7:1)
    tt.return loc("k.py":7:1)
  }} loc("k.py":1:1)
}}
"""


def a_kernel(directory: Path, bound: str = "%c64", stop: int = 64) -> KernelFacts:
    (directory / "k.ttir").write_text(LOOP.format(bound=bound, stop=stop))
    (kernel,) = inspect_cache(open_cache(directory))
    return kernel


@pytest.mark.parametrize(("stop", "count"), [(64, 2), (65, 3), (32, 1), (0, 0)])
def test_constants_tell_the_passes(tmp_path: Path, stop: int, count: int) -> None:
    """range(0, K, BLOCK_K) with K=64 and BLOCK_K=32 runs for 0 and 32."""
    kernel = a_kernel(tmp_path, stop=stop)
    work = kernel.stages[Stage.TTIR].work[kernel.principal or ""]
    assert work.trips == LoopRange(0, stop, 32)
    assert work.trips.trip_count == count == len(range(0, stop, 32))
    assert summarise(kernel).facts["loop1.trips"] == count


def test_an_argument_tells_none(tmp_path: Path) -> None:
    kernel = a_kernel(tmp_path, bound="%n")
    assert kernel.stages[Stage.TTIR].work[kernel.principal or ""].trips is None
    assert "loop1.trips" not in summarise(kernel).facts


DOTS = """module {
  tt.func public @k(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32 loc("k.py":3:1)
    %c32 = arith.constant 32 : i32 loc("k.py":3:1)
    %stop = arith.constant STOP : i32 loc("k.py":3:1)
    %zero = arith.constant dense<0.0> : tensor<16x16xf32> loc("k.py":3:1)
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>> loc("k.py":3:1)
    %qs = tt.splat %p : !tt.ptr<f16> -> tensor<32x16x!tt.ptr<f16>> loc("k.py":3:1)
    %s = scf.for %k = %c0 to %stop step %c32 iter_args(%acc = %zero) -> (tensor<16x16xf32>)  : i32 {
      %a = tt.load %ps : tensor<16x32x!tt.ptr<f16>> loc("k.py":5:1)
      %b = tt.load %qs : tensor<32x16x!tt.ptr<f16>> loc("k.py":6:1)
      %d = tt.dot %a, %b, %acc, inputPrecision = tf32 : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32> loc("k.py":7:1)
      scf.yield %d : tensor<16x16xf32> loc("k.py":7:1)
    } loc("k.py":4:1)
    %r = tt.splat %q : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>> loc("k.py":8:1)
    tt.store %r, %s : tensor<16x16x!tt.ptr<f32>> loc("k.py":8:1)
    tt.return loc("k.py":8:1)
  } loc("k.py":1:1)
}
"""


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (64, "2: 0–31, 32–63 of K"),
        (80, "3: 0–31, 32–63, 64–95 of K; the last 16 are past its end"),
        (4096, "128: 0–31, 32–63, 64–95, …, 4064–4095 of K"),
        (0, "0"),
    ],
)
@pytest.mark.parametrize("is_loop", [True, False], ids=["a loop", "unrolled"])
def test_the_story_tells_the_ranges_of_tiles(tmp_path: Path, stop: int, said: str, is_loop: bool) -> None:
    (tmp_path / "k.ttir").write_text(DOTS.replace("STOP", str(stop)))
    (kernel,) = inspect_cache(open_cache(tmp_path))
    told = dict(describe_work(kernel, kernel.principal or "", is_loop=is_loop))
    assert told["trip count"] == said


def test_a_step_that_is_no_depth_of_a_dot_has_numbers_and_no_ranges(tmp_path: Path) -> None:
    kernel = a_kernel(tmp_path)
    told = dict(describe_work(kernel, kernel.principal or "", is_loop=True))
    assert told["trip count"] == "2: 0, 32, in steps of 32 up to 64"

"""The time of compare-and-swap loops: what CTAs wait for each other, beside all other work."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.api import launches
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.diagnose import diagnose
from artifact_inspector.execution.timing.launch_time import LaunchTime
from tests.diagnosis.pairs import Variant, compile_variants

ROWS, COLUMNS, TILE = 4096, 4096, 32
SOURCE = """import triton
import triton.language as tl
@triton.jit
def gemv(a_ptr, x_ptr, y_ptr, K, BM: tl.constexpr, BK: tl.constexpr, SK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM,), dtype=tl.float32)
    for k0 in range(tl.program_id(1) * BK, K, BK * SK):
        rk = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :])
        acc += tl.sum(a.to(tl.float32) * tl.load(x_ptr + rk)[None, :].to(tl.float32), axis=1)
    tl.atomic_add(y_ptr + rm, acc.to(y_ptr.dtype.element_ty))
"""


def _variant(kind: str, splits: int) -> Variant:
    arguments = {
        "a_ptr": {"dtype": "fp16", "shape": [ROWS, COLUMNS]}, "x_ptr": {"dtype": "fp16", "shape": [COLUMNS]},
        "y_ptr": {"dtype": kind, "shape": [ROWS]}, "K": COLUMNS,
    }  # fmt: skip
    constants = {"BM": TILE, "BK": 128, "SK": splits}
    types = f"*fp16:16,*fp16:16,*{kind}:16,i32:16"
    return Variant("gemv", types, constants, [ROWS // TILE, splits, 1], arguments)


@pytest.mark.long
def test_the_share_of_a_swap_loop_is_the_time_that_a_native_atomic_saves(tmp_path: Path) -> None:
    file = tmp_path / "gemv.py"
    file.write_text(SOURCE, encoding="utf-8")
    variants = [_variant("fp16", 1), _variant("fp16", 8), _variant("fp32", 8)]
    candidates = compile_variants(variants, "sm_75", tmp_path / "cache", file)
    disassemble = make_disassembler([one.artifact for one in candidates], None, sass=True)
    pairs = [(one.artifact, one.request) for one in candidates]
    alone, swapped, native = (one.time for one in launches.predict_launches(pairs, disassemble))
    assert alone is not None
    assert swapped is not None
    assert native is not None
    for time in (alone, swapped, native):  # most atomics of a row are those of eight CTAs
        assert time.bound == "device memory"
        assert max(time.terms, key=time.terms.__getitem__) == "dram"
    assert alone.terms.get("atomics", 0.0) < 1 < swapped.terms["atomics"]
    # nobody interferes with the only CTA of a row
    first, second = (diagnose(one, disassemble) for one in candidates[:2])
    assert CauseKind.COMPARE_AND_SWAP not in [cause.kind for cause in first.causes]
    assert all((cause.share or 1.0) >= 0.005 for cause in first.causes)
    # eight CTAs add to two elements of each word
    assert "gemv.py:11 (" in second.summary
    assert "at least 16 " in second.summary
    share = int(second.summary.partition("gemv.py:11 (")[2].partition("%")[0]) / 100
    assert share == pytest.approx(1 - native.us / swapped.us, abs=0.02)


@pytest.mark.parametrize(
    ("alone", "added", "us", "bound"),
    [
        (0.0, 0.0, 102.0, "device memory"),
        (50.0, 0.0, 102.0, "device memory"),
        (0.0, 10.0, 112.0, "device memory"),
        (0.0, 300.0, 402.0, "atomics on one address"),
        (200.0, 0.0, 202.0, "atomics on one address"),
    ],
)
def test_atomics_limit_a_launch_only_if_they_take_most(
    alone: float, added: float, us: float, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing = SimpleNamespace(launch_us=2.0, dram_share=0.9, l2_bytes=1.0, l2_peak_bytes=1.0, fewest_bound_share=0.6)
    timed = SimpleNamespace(gpu=SimpleNamespace(timing=timing), microseconds=lambda _, cycles: cycles / 1000 + 2)
    model: Any = SimpleNamespace(launch_time=timed, sample=None)
    monkeypatch.setattr(launches, "serial_cycles", lambda _: (1000 * alone, 1000 * added))
    monkeypatch.setattr(launches, "launch_cycles", lambda *_: (100_000.0 + 1000 * added, {}))
    time = LaunchTime(102.0, 71.4, 147.9, "T4", "device memory", {"dram": 98.0, "l2": 9.0}, 1, 1.0, None, False)
    found = launches.with_serial_atomics(time, model)
    assert (found.us, found.bound) == (us, bound)
    assert found.terms.get("atomics", 0.0) == max(alone, added)
    if bound != time.bound:
        assert max(found.terms, key=found.terms.__getitem__) == "atomics"

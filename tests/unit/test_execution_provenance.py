"""Memory that a table of pointers names is no argument: what is asked for there is no access out of bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import FIRST_ADDRESS, KernelLaunch, Tensor
from artifact_inspector.execution.prediction import Prediction, predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.prediction import describe_counters, describe_limits

HEAD = '\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n'
TTIR = "module {\n  tt.func public @k(%table: !tt.ptr<i64>, %x: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n"
ELSEWHERE = 0x7ABC_0000_0000
OF_TABLE = """LDC.64 R2, c[0x0][0x210]
S2R R0, SR_CTAID.X
IMAD.WIDE R2, R0, 0x8, R2
LDG.E.64 R4, desc[UR4][R2.64]
S2R R1, SR_TID.X
IMAD.WIDE R4, R1, 0x4, R4"""
OF_ARGUMENT = "LDC.64 R4, c[0x0][0x218]\nS2R R1, SR_TID.X\nIMAD.WIDE R4, R1, 0x4, R4"
LOAD = "\nLDG.E R6, desc[UR4][R4.64]"


def predicted(tmp_path: Path, code: str, values: tuple[int, ...], x: Any) -> Prediction:
    """What two CTAs of a warp do that are given a table and `x`."""
    entry = tmp_path / "k"
    entry.mkdir()
    lines = [
        f"        /*{16 * at:04x}*/                   {text} ;\n"
        for at, text in enumerate((code + "\nEXIT").splitlines())
    ]
    target = {"backend": "cuda", "arch": 90, "warp_size": 32}
    (entry / "k.json").write_text(json.dumps({"name": "k", "num_warps": 1, "target": target}))
    (entry / "k.ttir").write_text(TTIR)
    (entry / "k.sass").write_text(HEAD + "".join(lines))
    (found,) = open_cache(tmp_path).entries
    table = Tensor((len(values),), "int64", values=values)
    return predict_counters(
        simulate_launch(load_kernel(found, None), KernelLaunch((2, 1, 1), {"table": table, "x": x}))
    )


X = Tensor((32,), "fp32")


def test_memory_that_a_table_points_to_is_unknown_and_no_bug(tmp_path: Path) -> None:
    found = predicted(tmp_path, OF_TABLE + LOAD, (ELSEWHERE, ELSEWHERE + 0x1000), X)
    assert found.out_of_bounds == ()
    assert found.out_of_bounds_lanes == 0
    assert found.counters.global_load_sectors == 2 * (1 + 4)
    assert found.counters.unique_bytes_read is None
    assert "memory that values of table point to" in found.unknown["unique_bytes_read"]
    assert found.counters.unique_bytes_written == 0


def test_a_table_may_point_to_an_argument(tmp_path: Path) -> None:
    x = Tensor((32,), "fp32", pointer=ELSEWHERE)
    found = predicted(tmp_path, OF_TABLE + LOAD, (ELSEWHERE, ELSEWHERE), x)
    assert found.counters.unique_bytes_read == 8 * 2 + 4 * 32


@pytest.mark.parametrize("x", [Tensor((30,), "fp32"), None], ids=["too short", "null"])
def test_an_address_of_an_argument_that_is_missed_is_a_bug_beside_a_table(tmp_path: Path, x: Any) -> None:
    table = OF_TABLE.replace("R4,", "R8,").replace(", R4", ", R8")
    code = table + LOAD.replace("R4", "R8") + "\n" + OF_ARGUMENT + LOAD
    found = predicted(tmp_path, code, (ELSEWHERE, 0), x)
    assert {one.address for one in found.out_of_bounds} <= (set(range(128)) if x is None else
        {FIRST_ADDRESS + (1 << 34) + 120, FIRST_ADDRESS + (1 << 34) + 124})  # fmt: skip
    assert found.out_of_bounds_lanes == (64 if x is None else 4)


def test_a_place_that_was_read_may_be_beyond_its_tensor(tmp_path: Path) -> None:
    code = OF_TABLE.rpartition("\n")[0] + "\nLDC.64 R6, c[0x0][0x218]\nIMAD.WIDE R4, R4, 0x4, R6" + LOAD
    found = predicted(tmp_path, code, (3, 40), X)
    assert found.out_of_bounds_lanes == 32
    assert {one.cta for one in found.out_of_bounds} == {1}


def test_values_that_were_not_given_are_asked_for_and_those_of_a_table_of_pointers_not(tmp_path: Path) -> None:
    found = predicted(tmp_path, OF_TABLE + LOAD, (ELSEWHERE, ELSEWHERE + 0x1000), X)
    assert not any("--launch" in said for said in describe_limits(found))
    lacking = replace(found, unknown={"global_load_sectors": "LDG at line 9 (k.py:4): values of idx"})
    assert 'Give the integers of idx in --launch FILE as "values": […].' in describe_limits(lacking)


def test_sectors_are_told_of_every_target_of_nvidia_measured_or_not(tmp_path: Path) -> None:
    found = predicted(tmp_path, OF_ARGUMENT + LOAD, (ELSEWHERE,), X)
    for held in (True, False):
        told = dict(describe_counters(replace(found, is_validated_on_hardware=held), None))
        assert told["sectors loaded"].startswith("8")
        assert "cache lines" not in told

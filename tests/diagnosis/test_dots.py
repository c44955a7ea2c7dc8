"""Instructions that convert, and products at the fp32 rate of a matrix unit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.diagnosis import arithmetic_causes


@pytest.mark.parametrize(
    ("opcode", "computes"),
    [
        ("FFMA", True), ("MUFU.EX2", True), ("v_pk_fma_f32", True), ("HFMA2", True),
        ("I2F.U8", False), ("HADD2.F32", False), ("PRMT", False), ("v_cvt_f32_ubyte0_e32", False), ("LOP3.LUT", False),
    ],
)  # fmt: skip
def test_conversions_are_no_float_arithmetic(opcode: str, computes: bool) -> None:
    step: Any = SimpleNamespace(opcode=opcode)
    assert arithmetic_causes.is_float_arithmetic(step) is computes


@pytest.mark.parametrize(
    ("kind", "rates", "gain"),
    [
        ("fp32", {"f32": 128, "tf32": 512}, 4.0),
        ("fp32", {"f32": 128, "tf32": None}, 1.0),
        ("tf32", {"f32": 128, "tf32": 512}, 1.0),
    ],
)
def test_only_fp32_products_gain_from_tf32(kind: str, rates: dict[str, int | None], gain: float) -> None:
    gpu = SimpleNamespace(rates=SimpleNamespace(matrix=rates))
    model: Any = SimpleNamespace(time=SimpleNamespace(gpu=gpu))
    steps: Any = [SimpleNamespace(kind="tensor", lane_flop=((kind, 64),))]
    assert arithmetic_causes._tf32_gain(model, steps) == gain


@pytest.mark.parametrize(
    ("opcode", "size"),
    [("ds_read_u8", 1), ("ds_read_u16_d16", 2), ("LDS.U16", 2), ("LDSM.16.MT88.4", None), ("LDS", None)],
)
def test_the_width_of_narrow_reads(opcode: str, size: int | None) -> None:
    match = arithmetic_causes._NARROW_READ.search(opcode)
    assert (None if match is None else int(match[1]) // 8) == size

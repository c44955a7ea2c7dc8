"""Instructions that convert or reduce, and products at the fp32 rate of a matrix unit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from saved import saved

from artifact_inspector.diagnosis import arithmetic_causes, diagnose, latency_causes
from artifact_inspector.diagnosis.source_operations import SourceOperations, read_source_operations


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
    ("wide_dots", "rates", "reason"),
    [
        (
            {},
            {"tf32": 512, "f16": 1024},
            "the fp32 dot runs on the FMA pipe; input_precision='tf32' uses the matrix unit",
        ),
        ({}, {"f16": 512}, "the dot runs on the FMA pipe, and sm_75 has no tf32"),
        (
            {"k.py:9": ("f32", "f16")},
            {"f16": 512},
            "the fp32 dot runs on the FMA pipe; its operands are loaded as f16: multiply f16, which uses the matrix unit",
        ),
    ],
)
def test_a_dot_of_upcast_operands_on_the_fma_pipe_needs_no_upcast(
    wide_dots: dict[str, tuple[str, str]], rates: dict[str, int], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step: Any = SimpleNamespace(kind="", opcode="FFMA", lane_flop=(("fp32", 2),), source_place="k.py:9")
    operations = SourceOperations({"k.py:9": frozenset({"tt.dot"})}, wide_dots=wide_dots)
    time = SimpleNamespace(gpu=SimpleNamespace(rates=SimpleNamespace(matrix=rates)))
    model: Any = SimpleNamespace(operations=operations, steps=(), time=time, target="sm_75")
    monkeypatch.setattr(arithmetic_causes, "group_by_line", lambda model, accepts: {"k.py:9": [step]})
    monkeypatch.setattr(arithmetic_causes, "attribute", lambda model, kind, line, steps, reason, left: reason)
    assert list(arithmetic_causes._dots(model)) == [reason]


def test_a_product_on_the_fma_pipe_has_the_roofline_of_the_matrix_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """137 GFLOP on an H100: at 1,980 MHz, the clock of a launch without matrix instructions, it would exceed the peak."""
    flop, cycles_per_second = 2 * 4096**3, 2 * 2048 * 132
    for name in ("product_cycles", "roofline_cycles"):
        monkeypatch.setattr(diagnose, name, lambda *arguments: flop / cycles_per_second)
    gpu = SimpleNamespace(name="NVIDIA H100 80GB HBM3", timing=SimpleNamespace(launch_us=1.0))
    traffic = SimpleNamespace(written_share=1.0)
    time = SimpleNamespace(gpu=gpu, traffic=traffic, microseconds=lambda sample, cycles: cycles / 1980 + 1.0)
    model: Any = SimpleNamespace(launch_time=time, sample=None)
    least, most = diagnose._roofline_microseconds(model)
    assert least == most
    assert flop / (least or 0.0) / 1e6 < 989.5  # the peak of the data sheet in TFLOP/s


@pytest.mark.parametrize(
    ("opcode", "size"),
    [("ds_read_u8", 1), ("ds_read_u16_d16", 2), ("LDS.U16", 2), ("LDSM.16.MT88.4", None), ("LDS", None)],
)
def test_the_width_of_narrow_reads(opcode: str, size: int | None) -> None:
    match = arithmetic_causes._NARROW_READ.search(opcode)
    assert (None if match is None else int(match[1]) // 8) == size


@pytest.mark.parametrize(
    ("opcode", "is_wide"),
    [
        ("I2F.U64", True), ("F2I.S64.TRUNC", True), ("v_cvt_f32_u64", True),
        ("I2F.S8", False), ("I2FP.F32.U32", False), ("F2F.F64.F32", False), ("I2F.F64", False),
    ],
)  # fmt: skip
def test_conversions_of_64_bit_integers(opcode: str, is_wide: bool) -> None:
    assert (arithmetic_causes._WIDE_CONVERSION.match(opcode) is not None) is is_wide


@pytest.mark.parametrize("barrier_line", ["k.py:4", "k.py:5"])
def test_only_barriers_of_reductions_are_lifted(barrier_line: str) -> None:
    """Without its barriers, the loads of an unrolled loop need not wait for each other."""
    code = [
        ("k.py:3", "global_load"), ("k.py:4", "barrier"), ("k.py:4", "shuffle"),
        ("k.py:3", "global_load"), (barrier_line, "barrier"), ("k.py:9", "global_load"),
    ]  # fmt: skip
    operations = SourceOperations(
        operations={"k.py:4": frozenset({"tt.reduce"})}, loops=(frozenset({"k.py:3", "k.py:4", "k.py:5"}),)
    )
    model: Any = SimpleNamespace(
        operations=operations,
        steps=[
            SimpleNamespace(index=index, source_place=place, kind=kind, opcode="")
            for index, (place, kind) in enumerate(code)
        ],
        is_in_loop=lambda step: True,
    )
    released = arithmetic_causes._released_loads(model, "k.py:4")
    assert released == ({3} if barrier_line == "k.py:4" else set())


def test_lines_whose_addresses_are_loaded_elements_gather() -> None:
    operations = SourceOperations(
        chained_loads={"k.py:4": frozenset({"k.py:2"}), "k.py:5": frozenset({"k.py:3"})},
        scalar_loads=frozenset({"k.py:2"}),
    )
    # a page that a scalar names is contiguous
    assert [operations.gathers(line) for line in ("k.py:3", "k.py:4", "k.py:5")] == [False, False, True]


def test_only_loads_of_the_same_loop_form_a_chain() -> None:
    """The expert of a tile is loaded before the loop, a page number in it."""
    operations = SourceOperations(
        chained_loads={"k.py:5": frozenset({"k.py:2", "k.py:4"}), "k.py:6": frozenset({"k.py:2"})},
        loops=(
            frozenset({"k.py:2", "k.py:3", "k.py:4", "k.py:5", "k.py:6"}),
            frozenset({"k.py:4", "k.py:5", "k.py:6"}),
        ),
    )
    assert latency_causes._loads_of_address(operations, "k.py:5") == {"k.py:4"}
    assert not latency_causes._loads_of_address(operations, "k.py:6")
    assert not latency_causes._loads_of_address(operations, "k.py:9")


def test_an_operand_that_passes_shared_memory_is_found() -> None:
    """P of attention is stored and loaded on the MFMA of one target; a warp group multiplies it from registers."""
    at = {name: read_source_operations(saved(f"3.6.0/{name}/flash_attention").artifact) for name in ("gfx942", "sm_90")}
    assert at["gfx942"].stores_operand == {"flash_attention.py:62"}
    assert at["sm_90"].stores_operand == set()

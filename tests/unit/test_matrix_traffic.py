"""Bytes of a matrix product, by the usual count, and what a time makes of them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from artifact_inspector import UsageError, cli
from artifact_inspector.analysis.access.matrix_traffic import parse_product


def run(*words: str) -> str:
    answer = CliRunner().invoke(cli.app, ["predict", "--product", *words])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_a_product_moves_each_operand_and_the_result_once() -> None:
    traffic = parse_product("1x4096@4096x7168", ["fp16"])
    assert traffic.bytes == (4096 * 2, 4096 * 7168 * 2, 7168 * 2)
    assert traffic.total == 58_742_784
    assert traffic.flop == 2 * 4096 * 7168


def test_each_matrix_may_have_a_type_of_its_own() -> None:
    assert parse_product("3x5 @ 5x7", ["fp16", "int4", "fp32"]).bytes == (30, 18, 84)  # 35 nibbles are 17.5 bytes


@pytest.mark.parametrize(
    ("word", "bits"), [("fp16", 16), ("bf16", 16), ("fp8e4nv", 8), ("int4", 4), ("i8", 8), ("tf32", 32), ("fp32", 32)]
)
def test_a_type_has_its_bits(word: str, bits: int) -> None:
    assert parse_product("8x8@8x8", [word]).bits == (bits, bits, bits)


def test_a_time_gives_the_bandwidth_in_both_units_and_its_share_of_the_peak() -> None:
    said = run("1x4096@4096x7168", "--time", "0.000294", "--gpu", "320")
    assert "58742784 B ÷ 0.000294 s = 186 GiB/s = 200 GB/s, 62% of 320 GB/s" in said


def test_a_peak_may_be_a_product() -> None:
    assert "62% of 320 GB/s" in run("1x4096@4096x7168", "--time", "0.000294", "--gpu", "T4")
    answer = CliRunner().invoke(cli.app, ["predict", "--product", "1x4@4x6", "--time", "1", "--gpu", "Voodoo2"])
    assert answer.exit_code == 2


def test_without_a_time_only_bytes_are_told() -> None:
    assert "/s" not in run("1x4096@4096x7168")
    document = json.loads(run("1x4096@4096x7168", "--json"))
    assert document["bytes"] == 58_742_784
    assert document["bytes_per_second"] is document["share_of_peak"] is None


@pytest.mark.parametrize(
    ("product", "types"),
    [("4096", "fp16"), ("1x4@5x6", "fp16"), ("0x4@4x6", "fp16"), ("1x4@4x6", "half"), ("1x4@4x6", "fp16,fp16")],
)
def test_what_is_no_product_is_named(product: str, types: str) -> None:
    with pytest.raises(UsageError):
        parse_product(product, types.split(","))


@pytest.mark.parametrize("words", [["--time", "0"], ["--time", "-1"], ["--gpu", "320"]])
def test_a_time_is_needed_and_positive(words: list[str]) -> None:
    answer = CliRunner().invoke(cli.app, ["predict", "--product", "1x4@4x6", *words])
    assert answer.exit_code == 2


@pytest.mark.parametrize("word", ["RTX 4090", "4090", "rtx 4090"])
def test_both_peaks_of_a_gpu_are_told_and_which_of_them_bounds(word: str) -> None:
    """2·2048³ FLOP in 1.3 ms are 13.2 TFLOP/s, 8% of 165.2; 25165824 B are 19.4 GB/s, 2% of 1008."""
    said = run("2048x2048@2048x2048", "--time", "0.0013", "--gpu", word).splitlines()
    assert said[2].endswith("= 19 GB/s, 2% of 1008 GB/s")
    assert said[3] == "13.2 TFLOP/s, 8% of 165.2 TFLOP/s in fp16"
    assert said[4] == "compute-bound: 8% of the peak of RTX 4090, whose ridge is at 164 FLOP/B"
    words = ("2048x2048@2048x2048", "--time", "0.0013", "--gpu", word, "--json")
    document = json.loads(run(*words))
    assert document["share_of_arithmetic"] == pytest.approx(2 * 2048**3 / 0.0013 / 165.2e12)
    assert document["flop_per_byte"] == pytest.approx(2 * 2048 / 3 / 2)


def test_a_number_with_its_unit_is_a_memory() -> None:
    said = run("1x4096@4096x7168", "--time", "0.000294", "--gpu", "4090GB/s")
    assert "5% of 4090 GB/s" in said
    assert "-bound" not in said


def test_more_than_a_memory_can_is_said_to_be_so() -> None:
    said = run("2048x2048@2048x2048", "--time", "0.00001", "--gpu", "320GB/s").splitlines()
    assert said[-1] == "above the peak: check the time and the GPU"


@pytest.mark.parametrize("peak", ["0", "-3", "3", "inf", "nan", "400000", "0.3GB/s"])
def test_a_peak_that_cannot_be_is_refused(peak: str) -> None:
    words = ["predict", "--product", "1x4@4x6", "--time", "1", f"--gpu={peak}"]
    answer = CliRunner().invoke(cli.app, words)
    assert answer.exit_code == 2


def test_a_share_above_one_is_said_to_be_impossible() -> None:
    said = run("2048x2048@2048x2048", "--time", "0.00001", "--gpu", "T4")
    assert "above the peak: check the time and the GPU" in said

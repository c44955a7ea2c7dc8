"""The floating-point operations of one source on several targets."""

from __future__ import annotations

import pytest
from saved import saved

from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.formats.amdgcn.operations import float_operations

ROWS, COLUMNS = 4096, 7168


@pytest.mark.parametrize("folder", ["3.6.0/sm_90", "3.9.0/sm_75", "3.6.0/gfx942"])
def test_a_product_has_the_same_flop_on_every_target(folder: str) -> None:
    """One multiply-add for each element, and the sums of partial results, which depend on the warp size."""
    artifact = saved(f"{folder}/gemv_splitk").artifact
    loaded = load_kernel(artifact, make_disassembler([artifact], None, sass=True))
    arguments = {
        "a_ptr": Tensor((ROWS,), "fp16"), "b_ptr": Tensor((ROWS, COLUMNS), "fp16"),
        "c_ptr": Tensor((COLUMNS,), "fp32"), "stride_bk": COLUMNS,
    }  # fmt: skip
    loaded, launch = match_launch(loaded, LaunchRequest((28, 32, 1), arguments), artifact.constants)
    flop = predict_counters(simulate_launch(loaded, launch)).counters.flop or {}
    assert list(flop) == ["fp32"]
    assert 1 < flop["fp32"] / (2 * ROWS * COLUMNS) < 1.05


def test_a_multiply_add_of_mixed_types_counts_in_32_bits() -> None:
    assert float_operations("v_fma_mix_f32") == float_operations("v_fma_mixlo_f16") == (("fp32", 2),)

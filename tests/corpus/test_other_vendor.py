"""`--on` another vendor's GPU, from the TTIR of a cache, against a compile of the source with that vendor's defaults."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from artifact_inspector.compiling import REFERENCE_KERNELS, KernelRequest, compile_kernels
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.passes.retargeting import compile_for_targets

NAMES = (
    "fused_linear", "matmul_grouped", "gemv_splitk", "matmul_square", "softmax", "layer_norm", "flash_attention",
    "matmul_descriptor", "gemv_loads_first", "gemv_int4", "matmul_persistent", "attention_backward", "grouped_gemm",
    "histogram", "linear_scan", "matmul_splitk", "matmul_fp8",
)  # fmt: skip
LOWERED_BY_AMD = {"matmul_descriptor", "matmul_persistent"}
"""AMD's passes over TTIR lower descriptors and hoist code, which no pass of NVIDIA undoes."""
PAIRS = (("sm_80", "gfx942"), ("sm_90", "gfx950"))
TARGETS = tuple(target for pair in PAIRS for target in pair)


@pytest.fixture
def kernels(name: str, tmp_path: Path) -> dict[tuple[str, str], KernelFacts]:
    """A kernel, compiled from its source for both GPUs, each with the default of `num_stages`."""
    module = import_module(REFERENCE_KERNELS[name])
    reference = module.REFERENCE
    place, options = f"{module.__file__}:{reference.kernel.__name__}", {"num_warps": reference.num_warps}
    request = KernelRequest(place, dict(reference.signature), dict(reference.constexprs), options)
    rows = compile_kernels([request], TARGETS, tmp_path / "cache")
    keys = [(name, target) for target in TARGETS]
    compiled = {key: row.directory for key, row in zip(keys, rows, strict=True) if row.directory is not None}
    assert set(keys) - compiled.keys() == ({("matmul_fp8", "sm_80")} if name == "matmul_fp8" else set())
    return {key: inspect_artifact(open_cache(Path(directory)).entries[0]) for key, directory in compiled.items()}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if turn % 17 else pytest.mark.long)
        for turn, name in enumerate(NAMES)
    ],
)
def test_another_vendors_gpu_gets_what_its_own_compile_takes(
    name: str, kernels: dict[tuple[str, str], KernelFacts]
) -> None:
    for target, other in (*PAIRS, *(pair[::-1] for pair in PAIRS)):
        is_lowered = (
            name in LOWERED_BY_AMD and other.startswith("sm_") and (name, other) != ("matmul_descriptor", "sm_80")
        )
        if is_lowered or ((name, "sm_80") not in kernels and "sm_80" in (target, other)):
            continue
        (made,) = compile_for_targets(kernels[name, target], [parse_target(other)])
        compiled = kernels[name, other]
        assert made.message is None
        assert made.resources is not None
        assert made.resources.registers.value == compiled.resources.registers.value
        assert made.resources.shared.value == compiled.resources.shared.value
        assert made.resources.spill_bytes.value == compiled.resources.spill_bytes.value
        assert made.occupancy == compiled.occupancy
        stages, last = (
            (2, "tensors below 2 GiB") if other.startswith("gfx") else (3, "descriptors and hoisted code as for AMD")
        )
        assert (made.assumptions[0], made.assumptions[-1]) == (f"num_stages {stages}, the default", last)

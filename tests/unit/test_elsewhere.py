"""A kernel of a cache compiled for another GPU: what is told is what a compile for that GPU takes."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec

import pytest
from saved import FIXTURES, saved

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Cache
from artifact_inspector.formats.mlir.rewriting import with_default_precisions
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.passes.retargeting import RetargetedKernel, compile_for_targets
from artifact_inspector.report.console import to_text
from artifact_inspector.report.kernel_report import KernelReport

KERNEL = "3.9.0/sm_80/gemv_splitk"


def rows(elsewhere: tuple[RetargetedKernel, ...], *targets: str) -> dict[str, str]:
    kernel = saved(KERNEL).facts
    others = [parse_target(target) for target in targets]
    cache = Cache(FIXTURES, (kernel.artifact,), (), ())
    lines = to_text(KernelReport(cache, kernel, others, elsewhere), 400).splitlines()
    told = (line.split("  ", 1) for line in lines if line.startswith(("occupancy ", "compiled ")))
    return {label: text.strip() for label, text in told}


@pytest.mark.long
def test_both_are_told_what_this_binary_says_and_what_the_kernel_takes_compiled_for_the_other_gpu() -> None:
    if find_spec("triton") is None:
        pytest.skip("Triton is not installed here.")
    there = saved("3.9.0/gfx942/gemv_splitk").facts  # the same kernel, compiled for it from the source
    (made,) = compile_for_targets(saved(KERNEL).facts, [parse_target("gfx942")])
    assert made.message is None
    assert made.occupancy is not None
    assert made.resources is not None
    assert made.resources.registers.value == there.resources.registers.value
    assert made.resources.shared.value == there.resources.shared.value
    assert there.occupancy is not None
    assert made.occupancy.blocks == there.occupancy.blocks
    told = rows((made,), "gfx942")
    assert told["occupancy gfx942"].startswith("unknown (needs a binary for gfx942")
    assert told["compiled gfx942"].startswith(f"{there.occupancy.blocks} blocks")
    assert f"{there.resources.registers.value} registers" in told["compiled gfx942"]


def test_what_the_same_binary_would_take_is_told_beside_it() -> None:
    kernel = saved("3.9.0/sm_80/matmul_grouped").facts
    made = RetargetedKernel(parse_target("sm_90"), "3.9.0", kernel.occupancy, kernel.resources, None)
    cache = Cache(FIXTURES, (kernel.artifact,), (), ())
    text = to_text(KernelReport(cache, kernel, [made.target], [made]), 400)
    assert "with this binary's registers and shared memory: 5 blocks" in text
    assert "96 registers, 30720 B shared (by Triton 3.9.0)" in text


def test_where_it_cannot_be_compiled_the_reason_and_the_command_stand_there() -> None:
    kernel = saved(KERNEL).facts
    files = {name: path for name, path in kernel.artifact.files.items() if name != "ttir"}
    without = inspect_artifact(dataclasses.replace(kernel.artifact, files=files))
    made = compile_for_targets(without, [parse_target("gfx942")])
    if find_spec("triton") is not None:
        assert made[0].message == f"{kernel.artifact.display_name} has no TTIR to compile."
    told = rows(made, "gfx942")
    assert "compiled gfx942" not in told
    assert (
        f"compiling its TTIR for gfx942 failed: {made[0].message}; for its own numbers: `inspect-kernel compile "
        in told["occupancy gfx942"]
    )


def test_its_own_target_is_not_compiled_for_again() -> None:
    assert compile_for_targets(saved(KERNEL).facts, [parse_target("sm_80")]) == ()


def test_precisions_are_the_defaults_of_the_other_target() -> None:
    amd = "%1 = tt.dot %a, %b, %c : tensor<16x16xf8E4M3FN> * tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>"
    nvidia = amd.replace("%c", "%c, inputPrecision = tf32 {maxNumImpreciseAcc = 1073741824 : i32}")
    assert with_default_precisions(nvidia, has_tf32=False, fp8_chunk=0) == amd
    assert with_default_precisions(amd, has_tf32=True, fp8_chunk=1 << 30) == nvidia
    chosen = amd.replace("%c", "%c, inputPrecision = tf32x3")
    assert with_default_precisions(chosen, has_tf32=False, fp8_chunk=0) == chosen
    assert with_default_precisions(chosen, has_tf32=True, fp8_chunk=0) == chosen

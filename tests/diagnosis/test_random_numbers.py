"""Random numbers that a Philox generator computes for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifact_inspector.compiling import KernelRequest, compile_kernels
from artifact_inspector.diagnosis.arithmetic_causes import find_arithmetic_causes
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, model_launch
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.objdump import binary_disassembler

KERNEL = """import triton, triton.language as tl

@triton.jit
def dropout(x_ptr, y_ptr, seed, NUMBERS: tl.constexpr, BLOCK: tl.constexpr):
    quarter = tl.program_id(0) * BLOCK // 4 + tl.arange(0, BLOCK // 4)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if NUMBERS == 4:
        a, b, c, d = tl.rand4x(seed, quarter)
        r = tl.reshape(tl.join(tl.join(a, b), tl.join(c, d)), [BLOCK])
    elif NUMBERS == 2:
        r = tl.randn(seed, offs)
    elif NUMBERS == 1:
        r = tl.rand(seed, offs)
    else:
        r = tl.umulhi(offs, 12345).to(tl.float32)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, tl.where(r > 0.1, x, 0.0))
"""
LINES = {1: "dropout.py:13", 2: "dropout.py:11"}


def model_dropout(directory: Path, numbers: int) -> LaunchModel:
    directory.mkdir()
    (directory / "dropout.py").write_text(KERNEL)
    types, constants = {"x_ptr": "*fp16:16", "y_ptr": "*fp16:16", "seed": "i32"}, {"NUMBERS": numbers, "BLOCK": 1024}
    compile_kernels(
        [KernelRequest(f"{directory}/dropout.py:dropout", types, constants)], ["sm_90"], directory / "cache"
    )
    (entry,) = open_cache(directory / "cache").entries
    launch = LaunchRequest(
        ("8192",), dict(map(parse_argument, ("x_ptr=fp16[8388608]", "y_ptr=fp16[8388608]", "seed=7")))
    )
    candidate = RankingCandidate(entry, launch, entry.constants)
    return model_launch(candidate, binary_disassembler(find_disassembler(None)))


@pytest.mark.long
def test_numbers_that_nobody_uses_are_named_with_what_all_four_save(tmp_path: Path) -> None:
    """The gain is that of the kernel that uses all: the exchange of its quarters costs a little."""
    models = {numbers: model_dropout(tmp_path / str(numbers), numbers) for numbers in (0, 1, 2, 4)}
    found = {
        numbers: [cause for cause in find_arithmetic_causes(model) if cause.kind is CauseKind.UNUSED_RANDOM]
        for numbers, model in models.items()
    }
    assert {numbers: [cause.line for cause in causes] for numbers, causes in found.items()} == {
        0: [], 1: [LINES[1]], 2: [LINES[2]], 4: [],
    }  # fmt: skip
    (cause,) = found[1]
    assert cause.reason.startswith("of four random numbers that Philox computes, 1 is used; tl.rand4x")
    assert 1 - (cause.share or 0) == pytest.approx((models[4].cycles or 0) / (models[1].cycles or 1), abs=0.15)

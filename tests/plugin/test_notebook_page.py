"""The blocks of docs/notebook.md that need a launch run where a stand-in answers for the GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from user_project import ROOT

PAGE = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- needs a launch -->\n```py\n(.*?)```", PAGE, re.S)

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
"""
PROGRAM = """
import sys
import torch
from added import add_kernel
from artifact_inspector import capture, inspect, watch

n = 4096
x, y, z = (torch.empty(n) for _ in range(3))
model = batch = None

def step(model, batch):
    for options in ({}, {"num_warps": 8}, {}):
        add_kernel[(n // 256,)](x, y, z, n, BLOCK=256, **options)

with capture(targets=["sm_90"], out="cache") as captured:
{blocks}
    assert len(kernels) == 1, kernels  # that with Triton's 4 warps was launched before
    assert kernels.note == "", kernels.note
assert kernel.title == "add_kernel for sm_90", kernel
assert kernel.details.artifact.num_warps == 4
assert kernels[0].details.artifact.num_warps == 8
again = [inspect(made) for made in captured]
assert [x.facts.facts for x in again] == [x.facts.facts for x in (kernel, kernels[0])]
print("as the page says")
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="Triton is for Linux")
def test_the_blocks_run_under_capture(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    assert len(BLOCKS) == 2
    blocks = "".join(f"    {line}\n" if line else "\n" for block in BLOCKS for line in block.splitlines())
    # a kernel without a loop has none to ask for
    blocks = blocks.replace("kernels[0].loop().verdict", "kernels[0].verdict")
    (tmp_path / "added.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM.replace("{blocks}", blocks), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.endswith("as the page says\n")

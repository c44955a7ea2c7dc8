"""The reference kernels compute what their docstrings say, judged by torch on the CPU.

Triton's interpreter runs them. It must be switched on before Triton is imported, so this file is also
the program that a child process runs: `python test_kernels.py` prints one line of JSON per kernel.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

KERNELS = (
    "flash_attention",
    "fused_linear",
    "gemv_splitk",
    "layer_norm",
    "matmul_descriptor",
    "matmul_grouped",
    "matmul_square",
    "softmax",
)

needs_triton_and_torch = pytest.mark.skipif(
    find_spec("triton") is None or find_spec("torch") is None,
    reason="Running a kernel under Triton's interpreter needs Triton and torch.",
)


@pytest.fixture(scope="module")
def deviations():
    """Kernel → largest deviation from torch, over the tolerance; at most 1 is right."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    child = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert child.returncode == 0, child.stderr
    return dict(json.loads(line) for line in child.stdout.splitlines())


@needs_triton_and_torch
@pytest.mark.parametrize("name", KERNELS)
def test_a_reference_kernel_agrees_with_torch(name, deviations):
    assert deviations[name] <= 1


def test_every_kernel_of_the_package_is_tested_here():
    import kernels

    files = {path.stem for path in (ROOT / "kernels").glob("*.py")} - {"__init__"}
    assert set(kernels.__all__) == files == set(KERNELS)


def test_importing_the_package_imports_no_triton():
    program = "import sys, kernels; sys.exit('triton' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


@pytest.mark.skipif(find_spec("triton") is None, reason="The configurations are Triton's own objects.")
def test_the_grouped_matmul_comes_with_17_different_configurations():
    from kernels.matmul_grouped import AUTOTUNE_CONFIGS

    assert len({str(config) for config in AUTOTUNE_CONFIGS}) == len(AUTOTUNE_CONFIGS) == 17


def _deviation(actual, expected, tolerance):
    """Largest |actual - expected| over an absolute and relative tolerance of the same size."""
    import torch

    assert actual.shape == expected.shape
    allowed = tolerance * (1 + expected.float().abs())
    worst = ((actual.float() - expected.float()).abs() / allowed).max()
    # a comparison with NaN would pass for "not larger"
    return float(torch.nan_to_num(worst, nan=float("inf")))


def _judge():
    """Run every kernel on shapes that its blocks do not divide, where it has masks for that."""
    import torch

    from kernels import (
        flash_attention,
        fused_linear,
        gemv_splitk,
        layer_norm,
        matmul_descriptor,
        matmul_grouped,
        matmul_square,
        softmax,
    )

    torch.manual_seed(0)

    def random(*shape, dtype=torch.float16):
        return torch.randn(shape, dtype=torch.float32).to(dtype)

    x, w, b = random(70, 40), random(40, 72), random(72)
    expected = torch.nn.functional.silu(x.float() @ w.float() + b.float())
    yield "fused_linear", _deviation(fused_linear.fused_linear(x, w, b), expected, 4e-3)

    a, b = random(130, 40), random(40, 35)
    yield "matmul_grouped", _deviation(matmul_grouped.matmul(a, b), a.float() @ b.float(), 4e-3)

    a, b = random(1, 256), random(256, 512)
    yield "gemv_splitk", _deviation(gemv_splitk.gemv(a, b), a.float() @ b.float(), 1e-4)

    a, b = random(33, 50, dtype=torch.float32), random(50, 40, dtype=torch.float32)
    yield "matmul_square", _deviation(matmul_square.matmul_square(a, b), a @ b, 1e-4)

    x = random(5, 100)
    yield "softmax", _deviation(softmax.softmax(x), torch.softmax(x.float(), dim=1), 2e-3)

    x, weight, bias = random(4, 100), random(100), random(100)
    expected = torch.nn.functional.layer_norm(x.float(), (100,), weight.float(), bias.float())
    yield "layer_norm", _deviation(layer_norm.layer_norm(x, weight, bias), expected, 4e-3)

    q, k, v = (random(2, 70, 16) for _ in range(3))
    expected = torch.softmax(0.3 * q.float() @ k.float().transpose(1, 2), dim=2) @ v.float()
    yield "flash_attention", _deviation(flash_attention.flash_attention(q, k, v, 0.3), expected, 4e-3)

    a, b = random(70, 64), random(80, 64)
    yield (
        "matmul_descriptor",
        _deviation(matmul_descriptor.matmul_descriptor(a, b), a.float() @ b.float().T, 4e-3),
    )


def _let_numpy_arrays_of_one_be_integers():
    """Triton up to 3.8 calls `int` on arrays of one element, which numpy 2.4 refuses."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_and_index(tensor, *scope):
        patch(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_and_index


if __name__ == "__main__":
    _let_numpy_arrays_of_one_be_integers()
    for verdict in _judge():
        print(json.dumps(verdict), flush=True)

"""The reference kernels compute what their docstrings say, judged by torch on the CPU.

Triton's interpreter runs them. It must be switched on before Triton is imported, so this file is also
the program that a child process runs: `python test_kernels.py` prints one line of JSON per kernel.
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from artifact_inspector.compiling import REFERENCE_KERNELS

ROOT = Path(__file__).resolve().parents[2]

# Problems small enough for the interpreter, of sizes that blocks do not divide, where there are masks for that.
SMALL = {
    "attention_backward": {"heads": 2, "seq_len": 100, "head_dim": 16},
    "flash_attention": {"heads": 2, "seq_len": 70, "head_dim": 16},
    "fused_linear": {"m": 70, "n": 72, "k": 40},
    "gemv_int4": {"k": 256, "n": 256},
    "gemv_loads_first": {"k": 256, "n": 512},
    "gemv_splitk": {"k": 256, "n": 512},
    "grouped_gemm": {"rows": 300, "groups": 4, "n": 200, "k": 72},
    "histogram": {"length": 40000},
    "layer_norm": {"rows": 4, "cols": 100},
    "linear_scan": {"rows": 2, "length": 1500},
    "matmul_descriptor": {"m": 70, "n": 80, "k": 64},
    "matmul_fp8": {"m": 130, "n": 140, "k": 144},
    "matmul_grouped": {"m": 130, "n": 35, "k": 40},
    "matmul_persistent": {"m": 300, "n": 260, "k": 72},
    "matmul_persistent_descriptor": {"m": 300, "n": 264, "k": 72},
    "matmul_scaled": {"m": 128, "n": 128, "k": 256},
    "matmul_splitk": {"m": 70, "n": 72, "k": 300},
    "matmul_square": {"m": 33, "n": 40, "k": 50},
    "matmul_warp_specialised": {"m": 130, "n": 136, "k": 72},
    "softmax": {"rows": 5, "cols": 100},
}

needs_triton_and_torch = pytest.mark.skipif(
    find_spec("triton") is None or find_spec("torch") is None,
    reason="Running a kernel under Triton's interpreter needs Triton and torch.",
)


@pytest.fixture(scope="module")
def deviations():
    """Kernel → its deviation from torch over the tolerance of its workload, 1 or less is right; else why none."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    child = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert child.returncode == 0, child.stderr
    return dict(json.loads(line) for line in child.stdout.splitlines())


@needs_triton_and_torch
def test_two_runs_of_grouped_gemm_have_the_same_groups():
    """They decide addresses: predictions of two runs must be equal."""
    from kernels.grouped_gemm import workload

    def groups():
        launch = workload("cpu", rows=300, groups=4, n=200, k=72).launch
        return dict(zip(launch.__code__.co_freevars, launch.__closure__, strict=True))["on_device"].cell_contents

    assert groups().tolist() == groups().tolist()


@needs_triton_and_torch
def test_a_persistent_kernel_fills_the_gpu_if_its_tensors_have_no_values(monkeypatch):
    import torch
    from artifact_inspector.kernels.matmul_persistent import multiprocessors

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(multi_processor_count=132))
    assert multiprocessors(torch.empty(8, device="meta")) == 132
    assert multiprocessors(torch.empty(8)) == 4


@pytest.mark.long
@needs_triton_and_torch
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.exhaustive) if "attention" in name else name for name in SMALL]
)
def test_a_reference_kernel_agrees_with_torch(name, deviations):
    if isinstance(deviations[name], str):
        pytest.skip(deviations[name])
    assert deviations[name] <= 1


@pytest.mark.skipif(find_spec("triton") is None, reason="A kernel's module imports Triton.")
@pytest.mark.parametrize("name", SMALL)
def test_a_configuration_names_what_the_kernel_lets_one_choose(name):
    if find_spec("torch") is None:
        pytest.skip("A workload is made of torch's tensors.")
    module = import_module(f"artifact_inspector.kernels.{name}")
    configs = module.workload("cpu", **SMALL[name]).configs
    assert configs
    assert len({str(sorted(config.items())) for config in configs}) == len(configs)
    chosen = {*module.REFERENCE.constexprs, "num_warps", "num_stages"}
    assert all(set(config) <= chosen for config in configs)


def test_every_kernel_of_the_package_is_tested_here():
    files = {path.stem for path in (ROOT / "kernels").glob("*.py")} - {
        "__init__",
        "gemm_int4",
    }  # a kernel to advise on, no reference
    assert set(REFERENCE_KERNELS) == files == set(SMALL)


def test_importing_the_package_imports_no_triton():
    program = "import sys, kernels; sys.exit('triton' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


@pytest.mark.skipif(find_spec("triton") is None, reason="The configurations are Triton's own objects.")
def test_the_grouped_matmul_comes_with_17_different_configurations():
    from artifact_inspector.kernels.matmul_grouped import AUTOTUNE_CONFIGS

    assert len({str(config) for config in AUTOTUNE_CONFIGS}) == len(AUTOTUNE_CONFIGS) == 17


def _judge():
    """Launch every kernel's small workload under the interpreter."""
    import torch
    from triton.runtime import interpreter

    from artifact_inspector.measuring.gpu_process import fill_with_poison, relative_error

    for name, size in SMALL.items():
        if name == "matmul_scaled" and not hasattr(interpreter.InterpreterBuilder, "create_dot_scaled"):
            yield name, "The interpreter of this Triton has no tl.dot_scaled."
            continue
        torch.manual_seed(0)
        workload = import_module(f"artifact_inspector.kernels.{name}").workload("cpu", **size)
        fill_with_poison(workload)
        workload.launch()
        found = relative_error(workload, workload.expected())
        yield name, 0.0 if found == 0 else found / workload.tolerance


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

"""Stored values are those of an independent computation, and a wrong one is named with element and line."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from memory_cases import run_command
from saved import FIXTURES

from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.compiling.capture import interpretation
from artifact_inspector.compiling.capture.interpreter_types import correct_loop_bounds
from artifact_inspector.execution.kernel_loader import LoadedKernel, load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.stored_values import StoredValues, TensorContents
from artifact_inspector.files.cache import open_cache
from artifact_inspector.memory_checks.problems import Check
from artifact_inspector.memory_checks.values import ValueCheck, check_values

PROGRAM = Path(__file__).parents[1] / "cases" / "values.py"


def _load(path: str) -> LoadedKernel:
    entry = open_cache(FIXTURES / path).entries[0]
    return load_kernel(entry, make_disassembler([entry], None, sass=True))


def _tensor(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any], dtype: str) -> Tensor:
    contents = TensorContents(*(StoredValues(one.reshape(-1).view(np.uint8), str(id(one))) for one in (before, after)))
    return Tensor(before.shape, dtype, contents=contents)


def _check(loaded: LoadedKernel, grid: tuple[int, int, int], arguments: dict[str, Any]) -> ValueCheck:
    ctas = grid[0] * grid[1] * grid[2]
    return check_values(loaded, place_tensors(KernelLaunch(grid, arguments, interpreted_ctas=ctas)), 10_000_000)


@pytest.mark.long
@pytest.mark.parametrize("target", ["sm_80", pytest.param("sm_90", marks=pytest.mark.long)])
def test_a_product_is_numpys_and_a_wrong_element_is_named(target: str) -> None:
    loaded = _load(f"3.6.0/{target}/matmul_square")
    names = [parameter.argument for parameter in loaded.parameters if parameter.type]
    random = np.random.default_rng(0)
    size = 64
    a, b = (random.integers(-8, 8, (size, size)).astype(np.float32) for _ in range(2))
    c = a @ b
    arguments: dict[str, Any] = dict.fromkeys(names, size)
    a_name, b_name, c_name = names[:3]
    arguments |= {a_name: _tensor(a, a, "fp32"), b_name: _tensor(b, b, "fp32")}
    grid = (2, 2, 1)  # tiles of 32×32
    right = _check(loaded, grid, {**arguments, c_name: _tensor(np.zeros_like(c), c, "fp32")})
    assert not right.problems, right
    (compared,) = [row for row in right.compared if row.tensor == c_name]
    assert compared.compared == size * size
    assert not compared.unknown
    c[5, 7] += 1
    wrong = _check(loaded, grid, {**arguments, c_name: _tensor(np.zeros_like(c), c, "fp32")})
    (problem,) = wrong.problems
    assert problem.check is Check.VALUE
    assert problem.message.startswith(f"{c_name}[5, 7]: the machine code stores ")
    assert problem.message.endswith(f"1 of {size * size:,} elements are wrong")


def test_an_exact_sum_has_no_tolerance_beyond_one_unit() -> None:
    loaded = _load("3.6.0/sm_80/masked_add")
    x, y = (np.arange(4096, dtype=np.float32) + step for step in (0, 1))
    out = x + y
    arguments = {"x_ptr": _tensor(x, x, "fp32"), "y_ptr": _tensor(y, y, "fp32"), "n": 4096}
    arguments["out_ptr"] = _tensor(np.zeros_like(out), out, "fp32")
    grid = (8, 1, 1)
    assert not _check(loaded, grid, arguments).problems
    out[4000] = np.nextafter(np.nextafter(out[4000], np.float32(np.inf)), np.float32(np.inf))
    arguments["out_ptr"] = _tensor(np.zeros_like(out), out, "fp32")
    (problem,) = _check(loaded, grid, arguments).problems
    assert problem.message.startswith("out_ptr[4000]: ")
    without = {name: replace(v, contents=None) if isinstance(v, Tensor) else v for name, v in arguments.items()}
    assert _check(loaded, grid, without).undecided == ("values: no results were recorded",)
    nothing = {**arguments, "n": 0, "out_ptr": _tensor(out, out, "fp32")}
    assert _check(loaded, grid, nothing) == ValueCheck()  # both store nothing


def test_values_of_an_amd_kernel_are_undecided() -> None:
    x = np.arange(4096, dtype=np.float32)
    arguments = {name: _tensor(x, x, "fp32") for name in ("x_ptr", "y_ptr", "out_ptr")}
    check = _check(_load("3.6.0/gfx942/masked_add"), (8, 1, 1), {**arguments, "n": 4096})
    assert check == ValueCheck(undecided=("values: the data of AMD kernels are not computed",))


@pytest.mark.parametrize(
    "target", [pytest.param("sm_80", marks=pytest.mark.long), pytest.param("sm_90", marks=pytest.mark.exhaustive)]
)
def test_a_program_stores_what_the_interpreter_stores(target: str) -> None:
    ran = run_command("-t", target, "--values", "--json", "--", sys.executable, str(PROGRAM))
    document = json.loads(ran.stdout)
    assert ran.returncode == 0, ran.stdout
    values = [row for launch in document["launches"] for row in launch["values"]]
    assert len(values) == 9
    assert sum(row["compared"] for row in values) > 14_000
    assert not any(row["wrong"] or row["unknown"] for row in values)


@pytest.mark.long
def test_the_interpreter_combines_the_elements_of_conditions_in_assignments(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    module = _import(
        tmp_path,
        "import triton, triton.language as tl\n\n@triton.jit\ndef select(out, n):\n"
        "    at = tl.arange(0, 16)\n    outside = not (at < 3) and at < n or at == 0\n"
        "    tl.store(out + at, outside.to(tl.int32))\n",
    )
    out = torch.full((16,), 7, dtype=torch.int32)
    done = interpretation.interpret_launch(module.select, (out, 9), {}, (1, 1, 1))
    assert (done.ctas, done.problem) == (1, None)
    assert out.tolist() == [1, 0, 0, *[1] * 6, *[0] * 7]


LIBRARY = """
import triton
from triton import language as L
from triton.language import arange, load
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as device
from triton.language.extra.libdevice import tanh

@triton.jit
def least(dtype):
    kind = dtype.value
    return -2.0 if kind.is_floating() else 0.0

@triton.jit
def compute(x, out, n, B: L.constexpr):
    at = arange(0, B)
    values = load(x + at, mask=at < n, other=least(x.dtype.element_ty))
    L.store(out + at, libdevice.atan(values) + tanh(values) * device.erf(values) + libdevice.isnan(values))

@triton.jit
def fill(out, B: L.constexpr):
    L.store(out + L.arange(0, B), L.full((B,), 1.3, L.bfloat16))
"""


def _import(tmp_path: Path, text: str) -> Any:
    (tmp_path / "imported.py").write_text(text)
    spec = importlib.util.spec_from_file_location("imported", tmp_path / "imported.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_interpreter_calls_imported_functions_and_libdevice(tmp_path: Path) -> None:
    """Torch computes the same."""
    torch = pytest.importorskip("torch")
    module, x, out = _import(tmp_path, LIBRARY), torch.linspace(-3, 3, 16), torch.zeros(16)
    done = interpretation.interpret_launch(module.compute, (x, out, 12), {"B": 16}, (1, 1, 1))
    assert (done.ctas, done.problem) == (1, None)
    given = torch.where(torch.arange(16) < 12, x, torch.tensor(-2.0))
    torch.testing.assert_close(out, given.atan() + given.tanh() * given.erf())
    rounded = torch.zeros(4, dtype=torch.bfloat16)
    done = interpretation.interpret_launch(module.fill, (rounded,), {"B": 4}, (1, 1, 1))
    assert (done.problem, rounded.tolist()) == (None, torch.full((4,), 1.3, dtype=torch.bfloat16).tolist())


def test_a_scalar_of_an_older_interpreter_bounds_a_loop() -> None:
    """Triton 3.6 makes an array of one element an index, which NumPy 2.4 refuses; Python's range is the judge."""

    class Tensor:
        def __init__(self, value: int) -> None:
            self.handle = SimpleNamespace(data=np.array([value], np.int32))

    def patch_as_3_6(tensor: Any, *_: Any) -> None:
        tensor.__index__ = lambda self: int(self.handle.data)

    interpreter = SimpleNamespace(_patch_lang_tensor=patch_as_3_6)
    interpreter._patch_lang_tensor(Tensor)
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4):
        with pytest.raises(TypeError):
            range(Tensor(3))
    correct_loop_bounds(interpreter)
    interpreter._patch_lang_tensor(Tensor, "scope")
    assert range(Tensor(1), Tensor(7), Tensor(2)) == range(1, 7, 2)


SPIN = """
import triton, triton.language as tl

@triton.jit
def take(lock):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
"""


@pytest.mark.long
def test_a_cta_that_waits_for_ever_ends_with_its_time(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    module = _import(tmp_path, SPIN)
    lock = torch.zeros(1, dtype=torch.int32)
    done = interpretation.interpret_launch(module.take, (lock,), {}, (2, 1, 1), seconds=0.5)
    assert done == (0, "the interpreter did not end in 0.5 s", {})
    assert int(lock) == 0

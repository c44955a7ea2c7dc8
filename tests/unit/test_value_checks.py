"""Stored values are those of an independent computation, and a wrong one is named with element and line."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_cases import run_command
from saved import FIXTURES

from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.compiling.capture import interpretation
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
    (tmp_path / "conditions.py").write_text(
        "import triton, triton.language as tl\n\n@triton.jit\ndef select(out, n):\n"
        "    at = tl.arange(0, 16)\n    outside = not (at < 3) and at < n or at == 0\n"
        "    tl.store(out + at, outside.to(tl.int32))\n"
    )
    torch = pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("conditions", tmp_path / "conditions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    out = torch.full((16,), 7, dtype=torch.int32)
    done = interpretation.interpret_launch(module.select, (out, 9), {}, (1, 1, 1))
    assert (done.ctas, done.problem) == (1, None)
    assert out.tolist() == [1, 0, 0, *[1] * 6, *[0] * 7]


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
    file = tmp_path / "spin.py"
    file.write_text(SPIN)
    spec = importlib.util.spec_from_file_location("spin", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    lock = torch.zeros(1, dtype=torch.int32)
    done = interpretation.interpret_launch(module.take, (lock,), {}, (2, 1, 1), seconds=0.5)
    assert done == (0, "the interpreter did not end in 0.5 s", {})
    assert int(lock) == 0

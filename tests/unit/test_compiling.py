"""Compiling with no GPU makes an ordinary Triton cache, and a refusal is a row."""

import os
import re
import signal
import sys
from importlib.util import find_spec

import pytest

from artifact_inspector.compiling import REFERENCE_KERNELS, compile_reference
from artifact_inspector.compiling._worker import run
from artifact_inspector.errors import CompileError, UsageError

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")


@needs_triton
def test_one_kernel_for_both_vendors_lands_in_one_cache(tmp_path):
    seen = []
    results = compile_reference(["softmax"], ["sm_80", "hip:gfx90a"], tmp_path, progress=seen.append)
    assert [(result.kernel, result.target.arch) for result in results] == [
        ("softmax", "sm_80"),
        ("softmax", "gfx90a"),
    ]
    assert sorted(seen, key=id) == sorted(results, key=id)
    nvidia, amd = (result.directory for result in results)
    assert {nvidia.parent, amd.parent} == {tmp_path}
    assert re.search(r"^\.target sm_80$", (nvidia / "softmax_kernel.ptx").read_text(), re.M)
    # Triton 3.9 writes a triple of another form
    assert re.search(r"^\s*\.amdgcn_target .*gfx90a", (amd / "softmax_kernel.amdgcn").read_text(), re.M)


@needs_triton
def test_pointers_of_amd_kernels_reach_less_than_2_gib_as_in_a_launch(tmp_path):
    (result,) = compile_reference(["softmax"], ["gfx942"], tmp_path)
    pointers = re.search(
        r"tt\.func public @softmax_kernel\((.*)\)", (result.directory / "softmax_kernel.ttir").read_text()
    )
    assert pointers[1].count("tt.pointer_range = 32 : i32") == 2


@needs_triton
def test_a_refused_compile_is_a_row_with_the_compilers_message_and_costs_no_other(tmp_path):
    # no Triton knows an AMD processor of this name
    refused, made = compile_reference(["softmax"], ["gfx999", "sm_80"], tmp_path)
    assert refused.directory is None
    assert "gfx999" in refused.message
    assert "Traceback" not in refused.message
    assert made.directory.is_dir()
    assert made.message is None


@needs_triton
def test_no_compile_takes_longer_than_it_may(tmp_path):
    (result,) = compile_reference(["flash_attention"], ["sm_75"], tmp_path, time_limit=0.02)
    assert result.directory is None
    assert result.message == "took longer than 0.02 s"


def _die(place, target):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_compiler_that_dies_costs_its_own_row():
    job = {"place": "", "target": "", "environment": {}}
    (row,) = run(_die, [job], workers=1, time_limit=60)
    assert row["directory"] is None
    assert row["message"] == "the compiler was ended by SIGKILL"


def _two_errors(place, target):
    # as a compiler does it: past Python
    os.write(2, b"kernel.py:3:1: error: no such layout\nsome warning\n")
    raise RuntimeError("PassManager::run failed")


def test_a_refusal_names_what_the_compiler_printed_first():
    (row,) = run(_two_errors, [{"place": "", "target": "", "environment": {}}], workers=1, time_limit=60)
    assert row["message"] == "kernel.py:3:1: error: no such layout\nRuntimeError: PassManager::run failed"


def test_an_unknown_kernel_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match=r"no reference kernel 'gemm'.*gemv_splitk"):
        compile_reference(["gemm"], ["sm_80"], tmp_path)


def test_without_triton_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("artifact_inspector.compiling.compile.find_spec", lambda name: None)
    with pytest.raises(CompileError, match=r"pip install 'triton>=3\.4'"):
        compile_reference(["softmax"], ["sm_80"], tmp_path)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_where_triton_cannot_be_installed_the_error_says_where_it_can(platform, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(CompileError, match="Compile on Linux"):
        compile_reference(["softmax"], ["sm_80"], tmp_path)


def test_every_reference_kernel_is_listed():
    import kernels

    assert sorted(REFERENCE_KERNELS) == sorted(kernels.__all__)

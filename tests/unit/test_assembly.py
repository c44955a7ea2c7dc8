"""PTX as a cubin where a cache has none: by Triton's own ptxas, kept in a directory of ours alone."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from saved import saved
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.errors import CacheError
from artifact_inspector.execution.interpreter.tensor_maps import parse_block
from artifact_inspector.facts.inspection import inspect_artifact, inspect_cache
from artifact_inspector.files.artifact import Artifact, MemoryFile
from artifact_inspector.files.assembly import _find_ptxas, _tool_for, assemble, with_cubin
from artifact_inspector.files.cache import open_cache

needs_ptxas = pytest.mark.skipif(_find_ptxas(is_new=False) is None, reason="no Triton with a ptxas is installed")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def without_cubin(path: str) -> Artifact:
    artifact = saved(path).facts.artifact
    return replace(artifact, files={k: v for k, v in artifact.files.items() if k != "cubin"})


@needs_ptxas
def test_registers_are_those_of_the_cubin_that_triton_kept(home: Path) -> None:
    """The same ptxas, asked as Triton asks it, makes the same of the same text."""
    kept = saved("3.9.0/sm_80/matmul_grouped").facts
    made = inspect_artifact(with_cubin(without_cubin("3.9.0/sm_80/matmul_grouped")))
    assert made.artifact.is_assembled
    assert made.resources.registers.value == kept.resources.registers.value
    assert made.occupancy == kept.occupancy


@needs_ptxas
def test_it_is_kept_in_our_own_directory_and_never_beside_the_entry(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = without_cubin("3.9.0/sm_80/matmul_grouped")
    ptx = artifact.files["ptx"]
    assert isinstance(ptx, Path)
    before = sorted(ptx.parent.iterdir())
    file = with_cubin(artifact).files["cubin"]
    assert isinstance(file, Path)
    assert home in file.parents
    assert sorted(ptx.parent.iterdir()) == before
    monkeypatch.setattr("artifact_inspector.files.assembly.run_tool", None)  # a second time runs no tool
    assert with_cubin(artifact).files["cubin"] == file


def test_a_kernel_with_a_cubin_or_without_ptx_is_left_alone() -> None:
    for path in ("3.9.0/sm_80/matmul_grouped", "3.9.0/gfx942/matmul_grouped"):
        artifact = saved(path).facts.artifact
        assert with_cubin(artifact) is artifact


def test_a_text_without_a_target_is_refused() -> None:
    artifact = without_cubin("3.9.0/sm_80/matmul_grouped")
    files = {**artifact.files, "ptx": MemoryFile("k.ptx", b".version 8.0\n")}
    with pytest.raises(CacheError, match="the PTX names no target"):
        with_cubin(replace(artifact, files=files))


def test_without_the_option_a_sentence_says_how_to_ask() -> None:
    from artifact_inspector.report.resources import describe_resources

    kernel = saved("3.6.0/sm_80/fused_linear").facts
    told = dict(describe_resources(kernel, ()))
    assert told["registers"].endswith("--assemble runs Triton's ptxas")


@pytest.mark.parametrize("named", ["", ".target sm_", ".target gfx942", f".target sm_{'9' * 5000}"])
def test_without_a_target_nothing_is_assembled(named: str) -> None:
    with pytest.raises(CacheError, match="names no target"):
        assemble(f".version 8.7\n{named}\n.address_size 64\n")


def test_the_block_of_a_descriptor_with_an_extent_that_no_compiler_writes_is_not_known() -> None:
    assert parse_block(f"!tt.tensordesc<tensor<{'9' * 5000}x64xf16>>") == ()


def test_the_ptxas_is_that_of_the_cuda_release_whose_isa_the_text_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton 3.9 assembles sm_90 with ptxas-blackwell, of CUDA 13; older releases with ptxas, of CUDA 12."""
    tools = tmp_path / "backends" / "nvidia" / "bin"
    tools.mkdir(parents=True)
    for name in ("ptxas", "ptxas-blackwell"):
        (tools / name).touch()
    monkeypatch.setattr("artifact_inspector.files.assembly.package_directories", lambda package: [tmp_path])
    taken = {
        text: _tool_for(f".version {text.split()[0]}\n.target {text.split()[1]}\n").name
        for text in ("8.8 sm_80", "8.7 sm_90a", "9.4 sm_90a", "8.8 sm_100a", "9.4 sm_100a")
    }
    assert taken == {
        "8.8 sm_80": "ptxas",
        "8.7 sm_90a": "ptxas",
        "9.4 sm_90a": "ptxas-blackwell",
        "8.8 sm_100a": "ptxas-blackwell",
        "9.4 sm_100a": "ptxas-blackwell",
    }


@needs_ptxas
@pytest.mark.parametrize("command", ["inspect", "findings"])
def test_a_refusal_is_a_problem_and_a_failure(home: Path, command: str) -> None:
    artifact = without_cubin("3.9.0/sm_80/matmul_grouped")
    cache = home / "cache"
    entry = cache / "entry"
    entry.mkdir(parents=True)
    for suffix, file in artifact.files.items():
        assert isinstance(file, Path)
        text = file.read_bytes()
        (entry / file.name).write_bytes(text.replace(b"ret;", b"return;") if suffix == "ptx" else text)
    done = CliRunner().invoke(app, [command, str(cache), "--assemble", "--json"])
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert any("ptxas rejects this PTX" in problem["problem"] for problem in document["problems"])


@needs_ptxas
def test_kernels_of_one_binary_have_the_registers_that_ptxas_names(tmp_path: Path) -> None:
    loads = "".join(f"ld.global.v2.f64 {{%f{n}, %f{n + 1}}}, [%a+{8 * n}]; " for n in range(0, 20, 2))
    stores = "".join(f"st.global.f64 [%a+{800 - 8 * n}], %f{n}; " for n in range(20))
    entries = {"light": "st.global.u64 [%a], %a;", "heavy": f"{loads} bar.sync 0; {stores}"}
    text = ".version 8.0\n.target sm_90\n.address_size 64\n" + "".join(
        f".visible .entry {name}(.param .u64 p) {{ .reg .b64 %a; .reg .f64 %f<20>; ld.param.u64 %a, [p]; {body} ret; }}\n"
        for name, body in entries.items()
    )
    (tmp_path / "two.ptx").write_text(text)
    command = [str(_find_ptxas(is_new=False)), "-v", "-arch=sm_90", "two.ptx", "-o", "two.cubin"]
    log = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stderr
    (tmp_path / "two.ptx").unlink()
    named = dict(re.findall(r"entry function '(\w+)'[^U]*?Used (\d+) registers", log, re.DOTALL))
    kernels = list(inspect_cache(open_cache(tmp_path)))
    assert {k.artifact.name: str(k.resources.registers.value) for k in kernels} == named
    assert named["light"] != named["heavy"]
    assert [k.contradictions for k in kernels] == [(), ()]

"""A tool is found in installed packages, at absolute places and by option, and nowhere else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from artifact_inspector.errors import CacheError
from artifact_inspector.files.scratch import machine_name, remove_stale
from artifact_inspector.files.tools import find_on_path, package_directories, private_copy, run_tool
from artifact_inspector.model.limits import TOOL_MIB, TOOL_SECONDS

FIXTURES = Path(__file__).parents[2] / "fixtures"


def program(path: Path, mark: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {mark}\necho 'nvdisasm: NVIDIA (R) CUDA disassembler V99.0.0'\n")
    path.chmod(0o755)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """A directory where everything that is run or imported leaves a mark."""
    mark = tmp_path / "mark"
    cache = tmp_path / "cache"
    program(cache / "triton" / "backends" / "nvidia" / "bin" / "nvdisasm", mark)
    program(cache / "nvdisasm", mark)
    program(cache / "llvm-objdump", mark)
    for name in ("triton/__init__.py", "json.py", "typer.py", "rich.py", "artifact_inspector_extra.py"):
        (cache / name).write_text(f"open({str(mark)!r}, 'w')")
    (cache / "k.json").write_text('{"num_warps": 4, "shared": 0}')
    (cache / "k.cubin").write_bytes(b"\x7fELF")
    return cache


@pytest.mark.parametrize("path", ["", ".", "relative"])
def test_nothing_in_the_directory_that_is_inspected_is_imported_or_run(trap: Path, path: str) -> None:
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "CUDA_HOME": ".", "ROCM_PATH": "."}
    done = subprocess.run(
        [sys.executable, "-m", "artifact_inspector", ".", "--sass", "--json"],
        cwd=trap,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    assert '"k"' in done.stdout
    assert not (trap.parent / "mark").exists()


def test_relative_places_on_path_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "tool", tmp_path / "mark")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{os.pathsep}.")
    assert find_on_path(["tool"]) is None
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_on_path(["missing", "tool"]) == tmp_path / "bin" / "tool"


def test_a_package_of_the_working_directory_is_no_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "somebodys").mkdir()
    (tmp_path / "somebodys" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    assert package_directories("somebodys") == [tmp_path / "somebodys"]
    monkeypatch.chdir(tmp_path)
    assert package_directories("somebodys") == []


def test_a_copy_is_private_and_gone_afterwards() -> None:
    with private_copy(b"x", "kernel.cubin") as path:
        assert path.read_bytes() == b"x"
        assert path.parent.stat().st_mode & 0o077 == 0
    assert not path.parent.exists()


def test_a_tool_that_takes_too_long_or_too_much_memory_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOOL_SECONDS.variable, "1")
    with pytest.raises(CacheError, match="took more than"):
        run_tool(["/bin/sleep", "30"], 100)
    monkeypatch.setenv(TOOL_SECONDS.variable, "30")
    monkeypatch.setenv(TOOL_MIB.variable, "256")
    hungry = "import time; time.sleep(0.3); bytearray(1 << 30)"
    status, said = run_tool([sys.executable, "-c", hungry], 100000, errors=True)
    assert status != 0
    assert b"MemoryError" in said


def test_what_killed_processes_left_is_removed_by_a_later_one(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = {
        "of one that ended": tmp_path / f"inspect-kernel-{machine_name()}-{ended.pid}-abc",
        "of one that runs": tmp_path / f"inspect-kernel-{machine_name()}-{os.getpid()}-abc",
        "of another name": tmp_path / "inspect-kernel-abc",
    }
    for place in left.values():
        place.mkdir()
        (place / "a.cubin").touch()
    (tmp_path / f"inspect-kernel-{machine_name()}-{ended.pid}-link").symlink_to(left["of one that runs"])
    remove_stale(tmp_path)
    assert [name for name, place in left.items() if not place.exists()] == ["of one that ended"]


def test_a_stage_that_is_disassembled_needs_no_file_of_its_own(tmp_path: Path) -> None:
    fixture, cache, tool = FIXTURES / "3.6.0" / "sm_100" / "softmax", tmp_path / "cache", tmp_path / "nvdisasm"
    (saved,) = fixture.rglob("*.sass")
    tool.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'nvdisasm: NVIDIA (R) CUDA disassembler V99.0.0'\n"
        f"exec cat '{saved}'\n"
    )
    tool.chmod(0o755)
    shutil.copytree(fixture, cache, ignore=shutil.ignore_patterns("*.sass"))
    command = [sys.executable, "-m", "artifact_inspector", str(cache), "softmax", "--stage", "sass", "--no-index"]
    env = {**os.environ, "ARTIFACT_INSPECTOR_SASS_CACHE": "off"}
    refused = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Add --sass" in refused.stderr
    shown = subprocess.run([*command, "--sass", "--nvdisasm", str(tool)], capture_output=True, text=True, env=env)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "sass" in shown.stdout


def test_a_command_that_is_asked_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    tool, cache, scratch = tmp_path / "nvdisasm", tmp_path / "cache", tmp_path / "scratch"
    tool.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] || sleep 30\necho 'nvdisasm: NVIDIA (R) CUDA disassembler V99.0.0'\n"
    )
    tool.chmod(0o755)
    shutil.copytree(FIXTURES / "3.6.0" / "sm_100" / "softmax", cache, ignore=shutil.ignore_patterns("*.sass"))
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "artifact_inspector", str(cache), "--sass", "--nvdisasm", str(tool), "--no-index"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 20
    while not any(scratch.glob("*/*")) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)
    assert any(scratch.glob("*/*"))
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    assert list(scratch.iterdir()) == []

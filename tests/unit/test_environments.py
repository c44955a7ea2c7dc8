"""A version of Triton is a Python that has it: given, here, kept from before, or made."""

import os
import stat
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from artifact_inspector.compiling import KernelRequest, compile_kernels
from artifact_inspector.compiling.ask import environments
from artifact_inspector.compiling.ask.environments import find_interpreter, parse_triton
from artifact_inspector.errors import CompileError, UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Environments are made on Linux only.")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "artifact-inspector" / "triton"


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def python_with(path, version):
    """A Python that says that it has a Triton."""
    return program(path, f'case "$*" in *metadata*) echo {version};; *) echo {sys.version_info[1]};; esac')


@pytest.mark.parametrize(
    ("text", "version"), [("3.2.0", "3.2.0"), ("3.2", "3.2.0"), ("v3.3", "3.3.1"), ("2.1", "2.1.0"), ("4.1", "4.1.0")]
)
def test_a_version_may_be_short(text, version):
    assert parse_triton(text) == (version, None)


def test_a_version_may_come_with_the_python_that_has_it():
    assert parse_triton("3.2.0=/opt/t/bin/python") == ("3.2.0", Path("/opt/t/bin/python"))


@pytest.mark.parametrize("text", ["newest", "3", "3.2.0=", ""])
def test_what_is_no_version_is_refused(text):
    with pytest.raises(UsageError, match=r"Write e\.g\. 3\.2\.0"):
        parse_triton(text)


def test_a_version_too_old_is_refused():
    with pytest.raises(UsageError, match=r"The oldest supported version is 2\.1"):
        parse_triton("2.0.0")


def test_an_environment_in_the_cache_is_used_again_and_nothing_is_made(cache):
    python = python_with(cache / "3.1.0" / "bin" / "python", "3.1.0")
    said = []
    found = find_interpreter("3.1.0", notice=said.append)
    assert found.command[0] == str(python)
    assert not said


def test_a_given_python_must_have_the_version(tmp_path):
    python = python_with(tmp_path / "python", "3.1.0")
    assert find_interpreter("3.1.0", python).command[0] == str(python)
    with pytest.raises(CompileError, match=r"has Triton 3\.1\.0, not 3\.2\.0"):
        find_interpreter("3.2.0", python)
    with pytest.raises(CompileError, match=r"has no Triton, not 3\.2\.0"):
        find_interpreter("3.2.0", tmp_path / "nothing")


def test_a_fork_has_the_module_under_another_distribution(tmp_path):
    base = tmp_path / "fork"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base], check=True)
    (packages,) = base.glob("lib/python3*/site-packages")
    (packages / "triton").mkdir()
    (packages / "triton" / "__init__.py").write_text('__version__ = "3.7.4+fb"')
    information = packages / "fbtriton-3.7.4.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: fbtriton\nVersion: 3.7.4\n")
    (information / "top_level.txt").write_text("triton\n")
    assert find_interpreter("3.7.4", base / "bin" / "python").command[0] == str(base / "bin" / "python")


def test_an_environment_is_made_aside_and_moved_to_its_place(cache, tmp_path, monkeypatch):
    # uv in one line: `uv venv … DIR` makes a Python, `uv pip …` says what it was asked for
    script = (
        'if [ "$1" = venv ]; then mkdir -p "$5/bin"; cp "$0.python" "$5/bin/python"; else echo "$@" > "$0.asked"; fi'
    )
    uv = program(tmp_path / "bin" / "uv", script)
    python_with(Path(f"{uv}.python"), "3.1.0")
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    said = []
    found = find_interpreter("3.1.0", notice=said.append)
    assert found.command[0] == str(cache / "3.1.0" / "bin" / "python")
    assert said == [f"creating an environment with Triton 3.1.0 in {cache / '3.1.0'}"]
    assert "--no-deps triton==3.1.0 setuptools<80 filelock" in Path(f"{uv}.asked").read_text()
    assert sorted(path.name for path in cache.iterdir()) == [".3.1.0.lock", "3.1.0"]


def test_where_nothing_can_be_installed_the_cause_is_named_and_nothing_is_left(cache, tmp_path, monkeypatch):
    uv = program(tmp_path / "bin" / "uv", 'if [ "$1" = pip ]; then echo "error: no route to host" >&2; exit 1; fi')
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(CompileError) as refused:
        find_interpreter("3.1.0")
    assert refused.value.message == "Triton 3.1.0 could not be installed: error: no route to host"
    assert "--triton 3.1.0=/path/to/python" in refused.value.remedy
    assert [path.name for path in cache.iterdir()] == [".3.1.0.lock"]


def test_a_triton_without_a_wheel_for_any_python_here_names_one_that_would_do(monkeypatch):
    monkeypatch.setattr(environments, "_find_pythons", lambda version: [])
    monkeypatch.setattr(environments, "find_on_path", lambda names: None)
    with pytest.raises(CompileError, match=r"wheels for Python 3\.11 and older.*Install Python 3\.11, or uv"):
        find_interpreter("2.1.0")


@pytest.mark.long
def test_a_relative_entry_of_path_has_no_installer(cache, tmp_path, monkeypatch):
    """The working directory may be a cache of somebody else."""
    planted = program(tmp_path / "uv", f"touch {tmp_path / 'ran'}; exit 1")
    program(tmp_path / "python3.11", f"touch {tmp_path / 'ran'}; exit 1")
    monkeypatch.chdir(planted.parent)
    monkeypatch.setenv("PATH", ".")
    with pytest.raises(CompileError, match=r"could not be installed|wheels for Python"):
        find_interpreter("2.1.0" if sys.version_info >= (3, 12) else "9.9.9")
    assert not (tmp_path / "ran").exists()


@pytest.mark.long
@pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")
def test_a_version_that_cannot_be_had_costs_its_own_rows(tmp_path, monkeypatch):
    from importlib.metadata import version

    def refuse(place, wanted):
        raise CompileError(f"Triton {wanted} could not be installed: no network", "Connect.")

    monkeypatch.setattr(environments, "_create_environment", refuse)
    here = version("triton")
    rows = compile_kernels([KernelRequest("softmax")], ["sm_80", "sm_90"], tmp_path / "c", tritons=["9.9.9", here])
    assert [(row.triton, row.message is None) for row in rows] == [
        ("9.9.9", False),
        ("9.9.9", False),
        (here, True),
        (here, True),
    ]
    with pytest.raises(CompileError, match="no network"):
        compile_kernels([KernelRequest("softmax")], ["sm_80"], tmp_path / "c", tritons=["9.9.9"])

"""`repro`: the file compiles to the same key in a process of its own, and its launch runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from saved import FIXTURES
from typer.testing import CliRunner

from artifact_inspector.api.reproducer import _standalone_source
from artifact_inspector.cli import app
from artifact_inspector.compiling import REFERENCE_KERNELS, KernelRequest, compile_kernels
from artifact_inspector.files.cache import open_cache

PROGRAM = '''"""A module with more than its kernel needs."""
import os
import math as m

import triton
import triton.language as tl

SCALE: tl.constexpr = tl.constexpr(3)
UNUSED = os.environ.get("NO_SUCH", "x")
raise_if_run = None


@triton.jit
def helper(x):
    return x * SCALE


def configs():
    return [triton.Config({"B": b}, num_warps=4) for b in (64, 128)]


@triton.autotune(configs=configs(), key=["n"])
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, stride, B: tl.constexpr, FLAG: tl.constexpr = None):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i * stride, mask=i < n)
    if FLAG is None:
        x = helper(x)
    tl.store(y_ptr + i, x, mask=i < n)


def unused():
    return not_defined_anywhere
'''


def python(*arguments: object, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process without this package, in a directory without it."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env |= {"TRITON_CACHE_DIR": str(cache), "CUDA_VISIBLE_DEVICES": "", **environment}
    command = [sys.executable, "-P", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=cache.parent, timeout=300)


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["repro", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def assert_same_key(file: Path, tmp_path: Path, key: str) -> None:
    done = python(file, "--compile", cache=tmp_path / "fresh")
    assert done.returncode == 0, (done.stdout, done.stderr[-2000:])
    assert done.stdout.strip() == f"key {key} as recorded"
    assert key in {entry.hash for entry in open_cache(tmp_path / "fresh").entries}


def check_reference(name: str, target: str, tmp_path: Path) -> None:
    (result,) = compile_kernels([KernelRequest(name)], [target], tmp_path / "cache")
    if result.directory is None:
        pytest.skip(f"{result.message}")
    (entry,) = open_cache(tmp_path / "cache").entries
    code, _, errors = run(tmp_path / "cache", "-o", tmp_path / "repro.py")
    assert code == 0, errors
    text = (tmp_path / "repro.py").read_text()
    assert "artifact_inspector" not in text
    assert_same_key(tmp_path / "repro.py", tmp_path, entry.hash)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "target"), [("softmax", "sm_80"), pytest.param("matmul_grouped", "gfx942", marks=pytest.mark.exhaustive)]
)
def test_a_reference_kernel_has_the_same_key(name: str, target: str, tmp_path: Path) -> None:
    check_reference(name, target, tmp_path)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=pytest.mark.exhaustive if (number + turn) % 24 else pytest.mark.long)
        for turn, target in enumerate(("sm_90", "sm_100", "gfx942"))
        for number, name in enumerate(REFERENCE_KERNELS)
    ],
)
def test_every_reference_kernel_has_the_same_key(name: str, target: str, tmp_path: Path) -> None:
    check_reference(name, target, tmp_path)


@pytest.fixture
def scaled(tmp_path: Path) -> Path:
    """A cache with one autotuned kernel of a user's file, and a small launch of it on record."""
    (tmp_path / "program.py").write_text(PROGRAM)
    request = KernelRequest(f"{tmp_path / 'program.py'}:scale_kernel", "*fp32:16, *fp32:16, i32, i32:1")
    (result,) = compile_kernels([request], ["sm_80"], tmp_path / "cache")
    assert result.directory is not None, result.message
    manifest = tmp_path / "cache" / "inspect-kernel.json"
    record = json.loads(manifest.read_text())
    x = {"shape": [100], "stride": [1], "dtype": "float32", "alignment": 16}
    arguments = {"x_ptr": x, "y_ptr": x, "n": 100, "stride": 1, "B": 64, "FLAG": None}
    (entry,) = open_cache(tmp_path / "cache").entries
    launch = {"grid": [2, 1, 1], "args": arguments, "hash": entry.hash, "kernel": "scale_kernel", "target": "sm_80"}
    manifest.write_text(json.dumps({**record, "launches": [launch]}))
    return tmp_path / "cache"


@pytest.mark.long
def test_a_users_kernel_keeps_its_lines_and_key_and_launches(scaled: Path, tmp_path: Path) -> None:
    code, output, errors = run(scaled, "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'program.py'}:scale_kernel")
    assert (code, errors) == (0, "")
    assert "--compile" in output
    lines, original = (tmp_path / "r.py").read_text().splitlines(), PROGRAM.splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("# -- reproducer"))
    assert all(new in (old, "") for new, old in zip(lines[:end], original, strict=False))
    kept = [line for line in lines[:end] if line]
    assert "def helper(x):" in kept
    assert "SCALE: tl.constexpr = tl.constexpr(3)" in kept
    assert not {"import math as m", "def unused():", 'UNUSED = os.environ.get("NO_SUCH", "x")', "import os"} & set(kept)
    (entry,) = open_cache(scaled).entries
    assert_same_key(tmp_path / "r.py", tmp_path, entry.hash)
    done = python(tmp_path / "r.py", cache=tmp_path / "run", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr[-2000:]
    sums = {line.split()[0]: float(line.split()[-1]) for line in done.stdout.splitlines()}
    assert sums["y_ptr"] == pytest.approx(3 * sums["x_ptr"], rel=1e-4)
    assert sums["x_ptr"] != 0


@pytest.mark.long
def test_a_changed_source_is_another_key(scaled: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.replace("tl.constexpr(3)", "tl.constexpr(4)"))
    assert run(scaled, "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'program.py'}:scale_kernel")[0] == 0
    done = python(tmp_path / "r.py", "--compile", cache=tmp_path / "fresh")
    assert done.returncode == 1
    assert "differs from" in done.stdout


KERNEL = "import triton\n\n\n@triton.jit\ndef k(x, n):\n    y = x + n\n    return y\n"
MAIN = "\n\ndef run(a):\n    return k(a, 1)\n\n\nprint(run)\nif __name__ == '__main__':\n    n = x = y = run(3)\n"


def test_only_what_the_kernel_uses_is_copied() -> None:
    text, _ = _standalone_source(KERNEL + MAIN, "k")
    assert text.strip() == KERNEL.strip()


def test_another_source_exits_1_without_a_compile(tmp_path: Path) -> None:
    """The record is of a launch: its argument that is 1 becomes a constant."""
    entry = tmp_path / "cache" / "ENTRY"
    entry.mkdir(parents=True)
    target = {"backend": "cuda", "arch": 90, "warp_size": 32}
    metadata = {"hash": "ab" * 32, "name": "k", "target": target, "triton_version": "3.9.0", "num_warps": 4}
    (entry / "k.json").write_text(json.dumps(metadata))
    (entry / "k.ttir").write_text('#loc = loc("/old/k.py":4:1)\n#loc1 = loc("/old/k.py":6:9)\n')
    row = {"directory": "ENTRY", "place": "/old/k.py:k", "types": ["x=i32:16", "n=i32:1"], "constants": {}}
    (tmp_path / "cache" / "inspect-kernel.json").write_text(json.dumps({"schema_version": 1, "entries": [row]}))
    arguments = (tmp_path / "cache", "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'k.py'}:k")
    (tmp_path / "k.py").write_text(KERNEL)
    assert run(*arguments)[0] == 0
    text = (tmp_path / "r.py").read_text()
    assert "TYPES = {'x': 'i32'}\n" in text
    assert "CONSTANTS = {'n': 1}\n" in text
    (artifact,) = open_cache(tmp_path / "cache").entries
    assert artifact.constants == {"n": 1}  # also what `diff --why` reads
    (tmp_path / "k.py").write_text(KERNEL.replace("x + n", "(x + n)"))
    code, _, errors = run(*arguments)
    assert code == 1
    assert "line 6 differs" in errors


@pytest.mark.long
def test_a_file_that_only_the_record_names_is_not_read(scaled: Path, tmp_path: Path) -> None:
    code, _, errors = run(scaled, "-o", tmp_path / "r.py")
    assert code == 2
    assert "--kernel FILE.py:KERNEL" in errors
    assert not (tmp_path / "r.py").exists()


@pytest.mark.long
def test_what_cannot_be_reproduced_is_an_error(scaled: Path, tmp_path: Path) -> None:
    assert run(FIXTURES / "3.6.0" / "sm_80" / "softmax", "-o", tmp_path / "r.py")[0] == 2  # no record
    assert run(FIXTURES / "3.2.0", "-o", tmp_path / "r.py")[0] == 2
    assert run(scaled, "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'none.py'}:k")[0] == 2
    (tmp_path / "broken.py").write_text("def k(:")
    assert run(scaled, "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'broken.py'}:k")[0] == 2
    assert run(scaled, "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'program.py'}:none")[0] == 2
    assert not (tmp_path / "r.py").exists()


@pytest.mark.long
def test_an_import_of_the_users_own_code_is_reported(scaled: Path, tmp_path: Path) -> None:
    source = PROGRAM.replace("import math as m", "from mine import helper as other").replace(
        "helper(x)\n    tl", "other(x)\n    tl"
    )
    (tmp_path / "program.py").write_text(source.replace("x = helper(x)", "x = other(x)"))
    code, _, errors = run(scaled, "-o", tmp_path / "r.py", "--kernel", f"{tmp_path / 'program.py'}:scale_kernel")
    assert code == 1  # another source
    assert "it imports mine, which is not copied" in errors

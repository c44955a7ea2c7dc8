"""Edit, try, answer: the states of a kernel that are compiled, and the exit code that says what became of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from artifact_inspector import cli
from artifact_inspector.compiling.ask.process import Interpreter
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.compiling.ask.trial import as_it_was
from artifact_inspector.errors import UsageError

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or shutil.which("git") is None, reason="It takes Triton (Linux) and git."
)

KERNEL = """\
import triton
import triton.language as tl
from factor import FACTOR


@triton.jit
def scale(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n) * FACTOR, mask=i < n)
"""
TAKES = ("-S", "*fp32:16,*fp32:16,i32", "-c", "BLOCK=512")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    top = tmp_path_factory.mktemp("checkout")
    (top / "scale.py").write_text(KERNEL)
    (top / "factor.py").write_text("import triton.language as tl\nFACTOR = tl.constexpr(2.0)\n")
    git = ["git", "-C", str(top), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("own")))
        yield top


def attempt(checkout: Path, *options: str) -> Result:
    return CliRunner().invoke(cli.app, ["try", f"{checkout}/scale.py:scale", "-t", "sm_80", *TAKES, *options])


def test_a_comment_reaches_nothing_and_another_value_in_an_imported_file_does(checkout: Path) -> None:
    (checkout / "scale.py").write_text(f"# what it is for\n\n{KERNEL}")
    unreached = attempt(checkout)
    assert unreached.exit_code == 0, unreached.output
    assert "No: TTIR and everything after it are identical." in unreached.stdout
    # the old state is compiled with its own neighbours
    (checkout / "factor.py").write_text("import triton.language as tl\nFACTOR = tl.constexpr(3.0)\n")
    reached = attempt(checkout, "--against", "HEAD", "--json")
    assert reached.exit_code == 1, reached.output
    (answer,) = json.loads(reached.stdout)["answers"]
    assert (answer["at"], answer["against"]) == ("ttir", "HEAD")


def test_one_thing_otherwise_is_held_against_the_same_file_without_it(checkout: Path) -> None:
    answer = attempt(checkout, "--with", "n=i32:16", "--with", "num_warps=8")
    assert answer.exit_code == 1, answer.output
    assert "Yes, at ttir: " in answer.stdout
    assert "num_warps 4→8" in answer.stdout
    assert "i32→i32:16" in answer.stdout


def test_a_cache_is_asked_for_the_kernel_of_the_same_name(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    place = f"{checkout}/scale.py:scale"
    made = CliRunner().invoke(cli.app, ["compile", place, "-t", "sm_80", *TAKES, "-o", str(tmp_path / "c")])
    assert made.exit_code == 0, made.output
    assert attempt(checkout, "--against", str(tmp_path / "c")).exit_code == 0
    assert attempt(checkout, "--against", str(tmp_path / "empty")).exit_code == 2


def test_a_kernel_that_is_refused_has_no_code_to_compare(checkout: Path) -> None:
    answer = attempt(checkout, "--with", "BLOCK=500")
    assert answer.exit_code == 3
    assert "power of 2" in answer.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--with", "nix=1"), "no option 'nix'"),
        (("--against", "nonesuch"), "nonesuch is no revision here"),
        (("--against", "gone.py"), "There is no file gone.py"),
        (("--with", "4"), "is no NAME=VALUE"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    checkout: Path, options: tuple[str, str], sentence: str
) -> None:
    answer = attempt(checkout, *options)
    assert answer.exit_code == 2
    assert sentence in answer.stderr


def test_a_kernel_that_is_no_file_was_never_otherwise() -> None:
    with pytest.raises(UsageError, match="no file here"):
        as_it_was(KernelRequest("softmax"), "HEAD")


def test_modules_of_a_checkout_are_imported_from_its_older_state(tmp_path: Path) -> None:
    paths = f"{tmp_path}/checkout/src:{tmp_path}/elsewhere"
    started = Interpreter(["python"], {"PYTHONPATH": paths})
    moved = started.with_instead(tmp_path / "checkout", tmp_path / "older")
    assert moved.environment["PYTHONPATH"] == f"{tmp_path}/older/src:{paths}"

"""Edit, try, answer: the states of a kernel that are compiled, and the exit code that says what became of it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from saved import FIXTURES
from typer.testing import CliRunner, Result

from artifact_inspector import cli
from artifact_inspector.api import trial
from artifact_inspector.compiling.ask.compile import KernelState, older_kernel_state
from artifact_inspector.compiling.ask.process import Interpreter
from artifact_inspector.compiling.ask.request import CompileResult, KernelRequest
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.hardware.targets import parse_target

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
SAVED = FIXTURES / "3.6.0"
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


@pytest.mark.exhaustive
def test_a_comment_reaches_nothing_and_another_value_in_an_imported_file_does(checkout: Path) -> None:
    (checkout / "scale.py").write_text(f"# what it is for\n\n{KERNEL}")
    unreached = attempt(checkout, "--keep", str(checkout / "tried"))
    assert unreached.exit_code == 0, unreached.output
    assert "No change: TTIR and all later stages are identical." in unreached.stdout
    # the old state is compiled with its own neighbours
    (checkout / "factor.py").write_text("import triton.language as tl\nFACTOR = tl.constexpr(3.0)\n")
    reached = attempt(checkout, "--against", "HEAD", "--json", "--keep", str(checkout / "tried"))
    assert reached.exit_code == 1, reached.output
    (answer,) = json.loads(reached.stdout)["results"]
    assert (answer["at"], answer["against"]) == ("ttir", "HEAD")


@pytest.mark.long
def test_one_thing_otherwise_is_held_against_the_same_file_without_it(checkout: Path) -> None:
    answer = attempt(checkout, "--with", "n=i32:16", "--with", "num_warps=8")
    assert answer.exit_code == 1, answer.output
    assert "The code changed (from TTIR on): " in answer.stdout
    assert "num_warps 4→8" in answer.stdout
    assert "i32→i32:16" in answer.stdout


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[CompileResult]:
    """A compile that is done at once: each state is a saved kernel."""
    rows = [CompileResult("masked_add", parse_target("sm_80"), 0.1, SAVED / "sm_80" / "masked_add", None)]
    monkeypatch.setattr(trial, "compile_states", lambda states, *_, **__: [rows for _ in states])
    return rows


def against(place: Path | str) -> Result:
    asked = ["try", "k.py:masked_add", "-t", "sm_80", "--against", str(place)]
    return CliRunner().invoke(cli.app, asked)


@pytest.mark.usefixtures("made")
def test_a_cache_is_asked_for_the_kernel_of_the_same_name_and_target() -> None:
    same = against(SAVED / "sm_80")
    assert same.exit_code == 0
    assert "launch code is not read" in same.stdout
    assert against(f"{SAVED}/sm_80:masked").exit_code == 0
    other = against(SAVED / "sm_75")
    assert other.exit_code == 2
    assert "No kernel here is for sm_80" in other.stderr


@pytest.mark.usefixtures("made")
def test_of_several_kernels_of_one_name_that_of_the_same_form_is_meant(tmp_path: Path) -> None:
    for number in range(2):
        shutil.copytree(SAVED / "sm_80" / "masked_add", tmp_path / str(number))
    several = against(tmp_path)
    assert several.exit_code == 2
    assert "Give one as CACHE:HASH" in several.stderr


def test_each_target_takes_its_own_record(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[str, object]] = []

    def compile_states(states: Sequence[KernelState], targets: Sequence[str], *_: object, **__: object) -> object:
        requests.append((targets[0], states[-1].request.options["arch"]))
        place = SAVED / targets[0] / "matmul_grouped"
        return [[CompileResult("matmul_grouped", parse_target(targets[0]), 0.1, place, None)]]

    def recorded_compile(entry: Artifact) -> object:
        return SimpleNamespace(types={}, constants={}, options={"arch": str(entry.target)})

    monkeypatch.setattr(trial, "compile_states", compile_states)
    monkeypatch.setattr(trial, "recorded_compile", recorded_compile)
    (name,) = {entry.display_name for entry in open_cache(SAVED / "sm_80" / "matmul_grouped").entries}
    reports = trial.try_change(KernelRequest(f"k.py:{name}"), ["sm_80", "gfx942"], str(SAVED))
    assert [report.reach.reached for report in reports] == [False, False]
    assert requests == [("sm_80", "sm_80"), ("gfx942", "gfx942")]


def test_a_kernel_that_is_refused_has_no_code_to_compare(made: list[CompileResult]) -> None:
    made[0] = replace(made[0], directory=None, message="arange's arguments must be a power of 2")
    answer = against(SAVED / "sm_80")
    assert answer.exit_code == 3
    assert "power of 2" in answer.stderr


def test_a_missing_signature_is_answered_with_both_sources(made: list[CompileResult]) -> None:
    made[0] = replace(made[0], directory=None, message="k needs its argument n.", remedy="Give …", is_usage_error=True)
    with pytest.raises(UsageError) as refused:
        trial._raise_failure(made[0])
    assert "--against CACHE, or give it with -S" in str(refused.value.remedy)


@pytest.mark.parametrize(
    ("message", "remedy", "answer"),
    [
        ("k needs its arguments RNG, n.", "Give constants with --const RNG=… --const n=64.", "--const RNG=… --const n=4096. Or"),
        ("k: n is a tl.constexpr, and 'i32:16' is not a value.", "Give it with --const n=…", "Give it with --const n=4096. Or"),
    ],
)  # fmt: skip
def test_a_new_constant_is_answered_with_what_the_recorded_launch_has(
    message: str, remedy: str, answer: str, made: list[CompileResult], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(SAVED / "sm_80", cache)
    (cache / "inspect-kernel.json").write_text(json.dumps({"launches": [{"args": {"n": 4096, "x": {"shape": [1]}}}]}))
    made[0] = replace(made[0], directory=None, message=message, remedy=remedy, is_usage_error=True)
    given = against(cache)
    assert given.exit_code == 2
    assert f"{answer} give it a default: `NAME: tl.constexpr = VALUE`." in " ".join(given.stderr.split())


def test_a_missing_file_is_an_error_of_its_own() -> None:
    answer = CliRunner().invoke(cli.app, ["try", "nofile.py:x"])
    assert (answer.exit_code, answer.stderr.splitlines()[0]) == (2, "inspect-kernel: nofile.py does not exist.")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--against", "nonesuch"), "nonesuch is not a git revision"),
        (("--against", "gone.py"), "There is no file gone.py"),
        (("--with", "4"), "is not NAME=VALUE"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(checkout: Path, options: tuple[str, str], sentence: str) -> None:
    answer = attempt(checkout, *options)
    assert answer.exit_code == 2
    assert sentence in answer.stderr


@pytest.mark.exhaustive
def test_three_edits_need_no_signature_and_few_seconds_and_tokens(tmp_path: Path) -> None:
    """`capture`, then edits and `try` only; of two captured configurations, the launched one is meant."""
    file = shutil.copy(Path(__file__).with_name("edit_loop.py"), tmp_path)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "own"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    command = [sys.executable, "-m", "artifact_inspector"]
    captured = subprocess.run(
        [*command, "capture", "-t", "sm_90", "-o", "cache", "--", sys.executable, file],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "next   inspect-kernel " in captured.stdout
    edits = (
        ("acc += tl.dot(a, ", "acc = tl.dot(acc=acc, input=a, other=", 0, "No change: TTIR"),
        ("(rk // GROUP)[:, None] * ssg + rn[None, :]", "(k // GROUP) * ssg + rn[None, :]", 1, "Better: "),
        (
            "input=a, other=((q - 8).to(tl.float16) * s).to(tl.float16)",
            "input=a.to(tl.float32), other=(q - 8) * s.to(tl.float32)",
            1,
            "Worse: ",
        ),
    )
    for old, new, status, sentence in edits:
        text = Path(file).read_text()
        assert old in text
        Path(file).write_text(text.replace(old, new))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = subprocess.run(
            [*command, "try", f"{file}:int4_gemm", "--against", "cache", "--brief"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (result.returncode, result.stderr) == (status, "")
        assert f"int4_gemm for sm_90: {sentence}" in result.stdout
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10
        assert len(result.stdout) / 4 < 1500


def test_a_kernel_that_is_no_file_was_never_otherwise() -> None:
    with pytest.raises(UsageError, match="not a file with an older state"):
        older_kernel_state(KernelRequest("softmax"), "HEAD")


def test_modules_of_a_checkout_are_imported_from_its_older_state(tmp_path: Path) -> None:
    paths = f"{tmp_path}/checkout/src:{tmp_path}/elsewhere"
    started = Interpreter(["python"], {"PYTHONPATH": paths})
    moved = started.with_older_state(tmp_path / "checkout", tmp_path / "older")
    assert moved.environment["PYTHONPATH"] == f"{tmp_path}/older/src:{paths}"

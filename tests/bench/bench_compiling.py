"""Compiling a sweep: what a second worker brings, and what a second run costs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from artifact_inspector.compiling import REFERENCE_KERNELS, KernelRequest, compile_kernels
from artifact_inspector.compiling.ask.compile import count_processors

pytest.importorskip("triton")

TARGETS = (
    *("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"),
    *("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200"),
)
SMALL = Path(__file__).parents[2] / "fixtures" / "sources" / "masked_add.py"
EIGHT = tuple(KernelRequest(name) for name in list(REFERENCE_KERNELS)[:8])


def seconds(out: Path, targets: tuple[str, ...], workers: int) -> float:
    started = time.perf_counter()
    rows = compile_kernels(EIGHT, targets, out, workers=workers)
    assert [row.message for row in rows if row.directory is None] == []
    return time.perf_counter() - started


def bench_two_workers_against_one(tmp_path: Path) -> None:
    if count_processors() < 2:
        pytest.skip("There is one processor.")
    targets = ("sm_80", "sm_90", "gfx942", "gfx1100")
    one, two = (seconds(tmp_path / str(workers), targets, workers) for workers in (1, 2))
    print(f"one worker {one:.1f} s, two {two:.1f} s: ×{one / two:.2f}")
    assert one / two >= 1.7


def bench_eight_kernels_for_fifteen_targets_and_once_more(tmp_path: Path) -> None:
    first = seconds(tmp_path, TARGETS, count_processors())
    second = seconds(tmp_path, TARGETS, count_processors())
    print(f"120 compiles {first:.1f} s, all cached {second:.1f} s")
    assert second < 3


def bench_edit_try_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = shutil.which("git")
    if git is None or count_processors() < 2:
        pytest.skip("It takes git and two processors.")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    shutil.copy(SMALL, tmp_path)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run([git, "-C", str(tmp_path), *words], check=True)
    file = tmp_path / SMALL.name
    file.write_text(SMALL.read_text().replace("x + y", "x + 2 * y"))
    command = [sys.executable, "-m", "artifact_inspector", "try", str(file), "-t", "sm_80"]
    started = time.perf_counter()
    answer = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", cwd=tmp_path)
    took = time.perf_counter() - started
    assert answer.returncode == 1, answer.stderr
    print(f"{answer.stdout.splitlines()[1]}\n{took:.1f} s from the edit to the answer, both compiles included")
    assert took < 4

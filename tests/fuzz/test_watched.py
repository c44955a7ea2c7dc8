"""Looking into a cache imports, executes and unpickles nothing of it, and writes nowhere but to the index."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPY = ROOT / "fixtures" / "3.6.0" / "sm_80" / "copy"
TRAPS = ("json.py", "typer.py", "sitecustomize.py", "triton/__init__.py", "artifact_inspector/__init__.py")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache with modules that Python looks for, a pickle, and a kernel whose text is Python."""
    cache = tmp_path / "cache"
    shutil.copytree(COPY, cache)
    for name in TRAPS:
        (cache / name).parent.mkdir(exist_ok=True)
        (cache / name).write_text("raise SystemExit(77)\n", encoding="utf-8")
    (cache / "k.pkl").write_bytes(pickle.dumps(print))
    (cache / "k.pth").write_text("import json\n", encoding="utf-8")
    (cache / "k").mkdir()
    (cache / "k" / "k.ttir").write_text("__import__('os').mkdir('made')\n", encoding="utf-8")
    return cache


def log_of(cache: Path, *words: str) -> tuple[int, list[str]]:
    """The exit code of a command that is run inside a cache, and the events that it is watched for."""
    log = cache.parent / "log"
    done = subprocess.run(
        [sys.executable, "-BP", str(ROOT / "tests" / "fuzz" / "watched.py"), str(log), *words],
        cwd=cache,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache.parent / "home")},
        capture_output=True,
        check=False,
    )
    assert done.returncode != 77, done.stderr
    return done.returncode, log.read_text(encoding="utf-8", errors="replace").splitlines()


@pytest.mark.long
@pytest.mark.skipif(sys.version_info < (3, 11), reason="-P came with Python 3.11")
@pytest.mark.parametrize("words", [(".",), (".", "--json"), ("findings", ".")], ids=" ".join)
def test_nothing_of_a_cache_is_run_and_nothing_is_written_but_the_index(cache: Path, words: tuple[str, ...]) -> None:
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    code, log = log_of(cache, *words)
    assert code == 0
    assert sum(line.startswith("import ") for line in log) > 50  # the hook hears
    index = str(cache.parent / "home")
    for line in log:
        event, _, rest = line.partition(" ")
        assert event != "run", line
        if event in ("exec", "compile", "import"):
            assert str(cache) not in rest
            assert not rest.startswith(("./", *TRAPS)), line
        if event in ("write", "change"):
            assert index in rest, line
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


@pytest.mark.long
def test_the_hook_hears_what_it_is_for(cache: Path) -> None:
    _, log = log_of(cache, "report", ".", "-o", str(cache.parent / "page.html"), "--no-index")
    assert any(line.startswith("write ") and str(cache.parent / ".writing-") in line for line in log)

"""A cache is watched while a program fills it: each kernel is told once, whole, and again when it changed."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console
from saved import FIXTURES, ROOT
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.cli import watch as command
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files import polling as arriving
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.polling import CachePoller
from artifact_inspector.report.watch import WatchReport, WatchSummary, line_of

A_KERNEL = next((FIXTURES / "3.2.0" / "sm_80" / "matmul_grouped").iterdir())
PATIENCE = 60.0


def names(arrivals: CachePoller) -> list[str]:
    return [one.display_name for one in arrivals.poll()]


def compiled(cache: Path, name: str = "ONE") -> Path:
    return Path(shutil.copytree(A_KERNEL, cache / name))


def later(directory: Path) -> None:
    """As if time had gone on: a coarse clock would show no change."""
    stat = directory.stat()
    os.utime(directory, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))


# -- what came -------------------------------------------------------------------------


def test_what_lies_there_is_no_news_unless_it_is_asked_for(tmp_path: Path) -> None:
    compiled(tmp_path)
    arrivals = CachePoller(tmp_path)
    assert [names(arrivals), names(arrivals)] == [[], []]
    assert names(CachePoller(tmp_path, skip_existing=False)) == ["matmul_kernel"]


def test_a_kernel_that_is_being_written_waits_until_it_is_whole_and_is_told_once(tmp_path: Path) -> None:
    arrivals = CachePoller(tmp_path)
    (tmp_path / "ONE").mkdir()
    for file in sorted(A_KERNEL.iterdir()):
        shutil.copy(file, tmp_path / "ONE")
        later(tmp_path / "ONE")
        assert names(arrivals) == []
        assert arrivals.has_pending_changes
    (found,) = arrivals.poll()
    assert (found.display_name, found.state) == ("matmul_kernel", "complete")
    assert not arrivals.has_pending_changes
    assert names(arrivals) == []


def test_a_kernel_that_was_compiled_anew_is_told_again(tmp_path: Path) -> None:
    file = compiled(tmp_path) / "matmul_kernel.ptx"
    arrivals = CachePoller(tmp_path)
    file.with_suffix(".tmp").write_text(file.read_text() + "\n")
    file.with_suffix(".tmp").replace(file)
    later(tmp_path / "ONE")
    assert [names(arrivals), names(arrivals), names(arrivals)] == [[], ["matmul_kernel"], []]


def test_a_cache_that_is_not_there_yet_is_waited_for_and_one_that_goes_is_no_fault(tmp_path: Path) -> None:
    cache = tmp_path / "later"
    arrivals = CachePoller(cache)
    assert names(arrivals) == []
    compiled(cache)
    assert [names(arrivals), names(arrivals)] == [[], ["matmul_kernel"]]
    shutil.rmtree(cache)
    assert [names(arrivals), names(arrivals)] == [[], []]
    compiled(cache)
    assert [names(arrivals), names(arrivals)] == [[], ["matmul_kernel"]]


def test_a_look_at_a_cache_at_rest_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(tmp_path)
    arrivals = CachePoller(tmp_path)
    monkeypatch.setattr(arriving, "open_cache", lambda _: pytest.fail("a file was looked into"))
    assert names(arrivals) == []


# -- what is shown ---------------------------------------------------------------------


def test_a_table_shows_what_came_last_as_far_as_the_screen_goes() -> None:
    kernels = list(inspect_cache(open_cache(FIXTURES / "3.2.0")))
    console = Console(file=io.StringIO(), width=150, height=8, color_system=None)
    with console.capture() as captured:
        console.print(WatchReport(kernels, "cache"))
    head, _, _, *rows = captured.get().splitlines()
    assert head.strip() == "5 kernels · Ctrl-C stops · cache"
    assert [row.split()[1] for row in rows] == [kernel.artifact.hash[:6] for kernel in kernels[-3:]]


@pytest.mark.parametrize(("width", "text"), [(40, "clustered loads"), (80, "pipelined(3)"), (120, "pipelined(3)")])
def test_a_narrow_screen_still_says_what_limits_it(width: int, text: str) -> None:
    kernels = list(inspect_cache(open_cache(FIXTURES / "3.2.0")))
    console = Console(file=io.StringIO(), width=width, height=60, color_system=None)
    with console.capture() as captured:
        console.print(WatchReport(kernels, "cache"))
    assert text in captured.get()


def test_a_summary_counts_verdicts_and_findings() -> None:
    console = Console(file=io.StringIO(), width=150, color_system=None)
    with console.capture() as captured:
        console.print(WatchSummary(list(inspect_cache(open_cache(FIXTURES / "3.2.0"))), 7.4))
    assert [line.strip() for line in captured.get().splitlines()] == [
        "5 kernels in 7 s",
        "verdicts: clustered 2, pipelined 2, interleaved 1",
        "findings: AI001 2, AI011 2, AI027 1",
    ]


# -- the command -----------------------------------------------------------------------


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the command on a cache that is empty."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "-m",
            "artifact_inspector",
            "watch",
            str(tmp_path / "cache"),
            "--all",
            "--every",
            "0.05",
        ]
        settings = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "TERM": "xterm", "COLUMNS": "150"}
        started.append(subprocess.Popen([*words, *options], stdout=stdout, stderr=subprocess.PIPE, env=settings))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_kernel_is_a_line_as_soon_as_it_is_whole_and_ctrl_c_ends_with_a_summary(
    tmp_path: Path, watched: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = watched()
    assert process.stdout is not None
    compiled(tmp_path / "cache")
    line = process.stdout.readline().decode()
    (kernel,) = inspect_cache(open_cache(tmp_path / "cache"))
    assert line == f"{line_of(kernel)}\n"
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=PATIENCE)
    assert rest.decode().startswith("1 kernel in ")
    assert (process.returncode, said) == (0, b"")


def read_until(words: bytes, terminal: int) -> bytes:
    shown = b""
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, shown
        shown += os.read(terminal, 65536)
    return shown


@pytest.mark.long
def test_a_terminal_shows_a_table_that_grows(tmp_path: Path, watched: Callable[..., subprocess.Popen[bytes]]) -> None:
    ours, theirs = pty.openpty()
    process = watched(stdout=theirs)
    os.close(theirs)
    compiled(tmp_path / "cache")
    shown = read_until(b"matmul_kernel", ours)
    assert b"Ctrl-C stops" in shown
    process.send_signal(signal.SIGINT)
    read_until(b"verdicts: pipelined 1", ours)
    assert process.wait(timeout=PATIENCE) == 0
    os.close(ours)


def test_a_watch_ends_when_nothing_comes_any_more(tmp_path: Path) -> None:
    compiled(tmp_path)
    told = CliRunner().invoke(cli.app, ["watch", str(tmp_path), "--all", "--idle", "0.05", "--every", "0.01"])
    assert told.exit_code == 0
    assert [line.split()[0] for line in told.stdout.splitlines()] == ["matmul_kernel", "1", "verdicts:"]


def test_json_is_a_document_in_a_line_for_each_kernel(tmp_path: Path) -> None:
    for name in ("ONE", "TWO"):
        compiled(tmp_path, name)
    told = CliRunner().invoke(cli.app, ["watch", str(tmp_path), "--all", "--idle", "0", "--json"])
    documents = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(one["document"], one["kernel"]["directory"]) for one in documents] == [
        ("watched", "ONE"),
        ("watched", "TWO"),
    ]
    assert documents[0]["kernel"]["verdict"] == "pipelined"


def test_a_file_is_no_cache_to_watch(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    told = CliRunner().invoke(cli.app, ["watch", str(tmp_path / "a")])
    assert told.exit_code == 2
    assert command.MIN_PAUSE_RATIO > 1

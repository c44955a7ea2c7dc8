"""Workers end with their parent, whatever ends it; temporary directories are removed by a later run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from artifact_inspector.compiling import publishing
from artifact_inspector.compiling.ask import process as compiling_process
from artifact_inspector.compiling.ask.process import Interpreter
from artifact_inspector.compiling.publishing import remove_stale_staging, staging_directory
from artifact_inspector.files import scratch
from artifact_inspector.files.scratch import machine_name, remove_stale, scratch_directory

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")

POOLS = {
    "ranking": """
from artifact_inspector.execution.timing.parallel_map import map_in_processes
list(map_in_processes(work, range(2), 2))
""",
    "reading": """
from pathlib import Path
from artifact_inspector.facts import workers
from artifact_inspector.files.cache import open_cache
entries = open_cache(Path({fixtures!r})).entries[:4]
workers.WORTHWHILE = 0
workers._compute_facts = work
list(workers.find_facts(entries, range(4), lambda kernel: None, None, 2))
""",
    "tools of a worker": """
import sys
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.files.tools import run_tool
def tool(number):
    run_tool([sys.executable, "-c", f"import os, time; print(os.getpid(), file=open({directory!r} + '/' + str(os.getpid()), 'w')); time.sleep(60)"], 100)
list(map_in_processes(tool, range(2), 2))
""",
}  # fmt: skip
_PREAMBLE = """
import os, time
from artifact_inspector.files.lifetime import end_on_signals
end_on_signals()
def work(number):
    open({directory!r} + "/" + str(os.getpid()), "w").close()
    time.sleep(60)
"""


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@needs_linux
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGHUP, signal.SIGTERM))]
)
@pytest.mark.parametrize("pool", POOLS)
def test_workers_end_with_their_parent(tmp_path: Path, pool: str, number: signal.Signals) -> None:
    fixtures = str(Path(__file__).parents[2] / "fixtures" / "3.6.0" / "sm_80")
    program = (_PREAMBLE + POOLS[pool]).replace("{directory!r}", repr(str(tmp_path)))
    program = program.replace("{fixtures!r}", repr(fixtures))
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert wait_until(lambda: len(list(tmp_path.iterdir())) >= 2, 30)
        pids = [int(file.name) for file in tmp_path.iterdir()]
        assert all(map(alive, pids))
        parent.send_signal(number)
        parent.wait(10)
        assert wait_until(lambda: not any(map(alive, pids)), 5), [pid for pid in pids if alive(pid)]
    finally:
        for pid in (parent.pid, *(int(file.name) for file in tmp_path.iterdir())):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        parent.wait()


@needs_linux
def test_a_worker_that_its_pool_ends_takes_its_tool_along(tmp_path: Path) -> None:
    """A pool sends SIGTERM to its other workers when one has ended."""
    program = (_PREAMBLE + POOLS["tools of a worker"]).replace("{directory!r}", repr(str(tmp_path)))
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert wait_until(lambda: len([file for file in tmp_path.iterdir() if file.read_text()]) >= 2, 30)
        pids = [int(file.name) for file in tmp_path.iterdir()]
        workers = [int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids]
        os.kill(workers[0], signal.SIGTERM)
        assert wait_until(lambda: not any(map(alive, [*workers, *pids])), 5)
    finally:
        parent.kill()
        parent.wait()


@needs_linux
def test_a_tool_that_just_started_ends_with_the_parent_of_its_worker(tmp_path: Path) -> None:
    """The worker noted a tool only after it ran: a parent that ended in between left the tool."""
    program = (_PREAMBLE + POOLS["tools of a worker"]).replace("{directory!r}", repr(str(tmp_path)))
    slow = "import subprocess\nstart = subprocess.Popen.__init__\n"
    slow += "def start_slowly(*a, **o):\n    start(*a, **o)\n    time.sleep(0.7)\nsubprocess.Popen.__init__ = start_slowly\n"
    parent = subprocess.Popen([sys.executable, "-c", "import time\n" + slow + program], start_new_session=True)
    try:
        assert wait_until(lambda: len([file for file in tmp_path.iterdir() if file.read_text()]) >= 1, 30)
        parent.kill()
        parent.wait(10)
        time.sleep(1)
        pids = [int(file.name) for file in tmp_path.iterdir()]
        assert wait_until(lambda: not any(map(alive, pids)), 5), [pid for pid in pids if alive(pid)]
    finally:
        for file in tmp_path.iterdir():
            if alive(int(file.name)):
                os.kill(int(file.name), signal.SIGKILL)


@needs_linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_compiling_process_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    pytest.importorskip("triton")
    (tmp_path / "slow.py").write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-m", "artifact_inspector", "compile", "slow.py:k", "-t", "sm_80", "-o", "cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pid_file = tmp_path / "pid"
    assert wait_until(lambda: pid_file.exists() and pid_file.read_text() != "", 30)
    parent.send_signal(number)
    parent.wait(10)
    assert wait_until(lambda: not alive(int(pid_file.read_text())), 5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_a_fork_is_not_lost(tmp_path: Path, number: signal.Signals) -> None:
    """Python ignores exceptions in callbacks of a fork, as those of `logging`; so does a destructor."""
    program = f"""
import os, signal, sys, time
from artifact_inspector.files.lifetime import end_on_signals
end_on_signals()
class Unwound:
    def __enter__(self): return self
    def __exit__(self, *_):
        time.sleep(0.5)  # longer than the time to the next attempt, which must not interrupt this
        open({str(tmp_path / "unwound")!r}, "w").close()
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), {int(number)}))
with Unwound():
    if os.fork() == 0:
        os._exit(0)
    time.sleep(30)
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert time.monotonic() - start < 20
    assert b"Exception ignored" not in done.stderr
    assert done.returncode in (128 + number, -number)
    assert (tmp_path / "unwound").exists()


@pytest.mark.parametrize(("pause", "ends_at_once"), [(0.1, False), (1.3, True)])
def test_a_second_signal_interrupts_no_cleaning_up_but_ends_a_stuck_one(pause: float, ends_at_once: bool) -> None:
    """`timeout` signals a program and then its group: an exception in `Popen.wait` would leave its lock locked."""
    program = """
import os, signal, sys, time
from artifact_inspector.files.lifetime import end_on_signals
end_on_signals()
try:
    print("runs", flush=True)
    time.sleep(30)
finally:
    end = time.monotonic() + 2
    while time.monotonic() < end:
        time.sleep(0.01)
    print("cleaned up", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.send_signal(signal.SIGTERM)
        time.sleep(pause)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == ("" if ends_at_once else "cleaned up\n")
        assert process.wait(10) == 128 + signal.SIGTERM


def test_a_compiling_process_ends_although_a_signal_has_kept_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling_process, "_ENDING_SECONDS", 0.2)
    start = time.monotonic()
    reads = Interpreter([sys.executable, "-c", "import sys; sys.stdin.read()"], {}, "3.9.0")
    with compiling_process._start_worker(reads) as (worker, _):
        worker._waitpid_lock.acquire()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 5
    worker._waitpid_lock.release()  # type: ignore[attr-defined]
    assert worker.wait(5) in (0, -signal.SIGTERM)


@pytest.mark.long
def test_an_interrupt_that_is_caught_is_raised_once() -> None:
    """A capture that the user stops still reports what it has."""
    program = """
import os, signal, time
from artifact_inspector.files.lifetime import end_on_signals
end_on_signals()
try:
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    pass
time.sleep(1.5)
print("reports")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "reports\n", "")


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As under nohup."""
    program = (
        "import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from artifact_inspector.files.lifetime import end_on_signals\nend_on_signals()\n"
        "os.kill(os.getpid(), signal.SIGHUP)\nprint('runs')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "runs\n"


TOOL_THAT_STARTS_WHILE_THE_PROCESS_ENDS = """
import os, signal, subprocess, threading
from artifact_inspector.files.lifetime import add_tool, end_on_signals
end_on_signals()
has_started, is_ending = threading.Event(), threading.Event()
def run():
    tool = subprocess.Popen(["sleep", "30"], start_new_session=True)
    has_started.set()
    is_ending.wait()
    add_tool(tool.pid)
    tool.wait()
threading.Thread(target=run).start()
has_started.wait()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    is_ending.set()
"""


def test_a_tool_that_starts_while_the_process_ends_is_killed() -> None:
    """Its thread has started it, and not noted it yet, when the signal arrives."""
    program = [sys.executable, "-c", TOOL_THAT_STARTS_WHILE_THE_PROCESS_ENDS]
    assert subprocess.run(program, timeout=20, check=False).returncode == 128 + signal.SIGTERM


SIGNAL_WHILE_A_TOOL_STARTS = """
import os, pathlib, signal, subprocess, sys, threading
from artifact_inspector.files.lifetime import end_on_signals
from artifact_inspector.files.tools import run_tool
number, moment, pid_file = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
owner, name = {"process": (subprocess.Popen, "_execute_child"), "timer": (threading.Timer, "start")}[moment]
start = getattr(owner, name)
def start_and_interrupt(self, *arguments):
    start(self, *arguments)
    if moment == "process":
        pid_file.write_text(str(self.pid))
    os.kill(os.getpid(), number)
setattr(owner, name, start_and_interrupt)
end_on_signals()
run_tool(["/bin/sleep", "50"], 100)
"""


@needs_linux
@pytest.mark.parametrize("moment", ["process", "timer"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_tool_starts_ends_both(tmp_path: Path, number: signal.Signals, moment: str) -> None:
    """The process does not wait for the timer of the tool, and knows the tool that it has just started."""
    pid_file = tmp_path / "pid"
    program = [sys.executable, "-c", SIGNAL_WHILE_A_TOOL_STARTS, str(int(number)), moment, str(pid_file)]
    status = subprocess.run(program, timeout=40, check=False, stderr=subprocess.DEVNULL).returncode
    assert status == (128 + number if number == signal.SIGTERM else -number)
    if moment == "process":
        assert wait_until(lambda: not alive(int(pid_file.read_text())), 5)


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@needs_linux
def test_a_process_that_no_parent_waits_for_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    assert wait_until(lambda: not alive(process.pid), 30)
    assert not scratch.is_alive(process.pid)
    process.wait()
    assert scratch.is_alive(os.getpid())


@pytest.mark.parametrize("prefix", ["inspect-kernel-", ".compiling-", ".writing-"])
@pytest.mark.parametrize("is_file", [False, True])
def test_directories_of_ended_owners_are_removed(tmp_path: Path, prefix: str, is_file: bool) -> None:
    ended, machine = ended_process(), machine_name()
    names = {
        f"{prefix}{machine}-{ended}-abc12_34": True,
        f"{prefix}{machine}-{os.getpid()}-abc12_34": False,
        f"{prefix}other.0123abcd-{ended}-abc12_34": False,
        f"{prefix}{machine.partition('.')[0]}.00000000-{ended}-abc12_34": False,
        f"{prefix}{ended}-abc12_34": False,
        f"{prefix}other": False,
    }
    for number, name in enumerate(names):
        if number == 0 and is_file:
            (tmp_path / name).touch()
            continue
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    remove_stale(tmp_path, prefix)
    assert [name for name in names if not (tmp_path / name).exists()] == [name for name, gone in names.items() if gone]
    for name in names:
        if (tmp_path / name).exists():
            os.utime(tmp_path / name, (0, 0))
    remove_stale(tmp_path, prefix)
    assert {path.name for path in tmp_path.iterdir()} == {f"{prefix}{machine}-{os.getpid()}-abc12_34", f"{prefix}other"}


def test_a_running_compile_of_another_container_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process ID does not run here, and another container shares the directory."""
    monkeypatch.setattr(publishing, "owned_prefix", lambda prefix: f"{prefix}other.0123abcd-{ended_process()}-")
    elsewhere = staging_directory(tmp_path)
    monkeypatch.undo()
    remove_stale_staging(tmp_path)
    here = staging_directory(tmp_path)
    assert elsewhere.is_dir()
    assert here.is_dir()


_WRITERS = {
    "text": "from artifact_inspector.files.writer import write_text as write\nos.replace = stop\nwrite(path, 'x')",
    "table": "from artifact_inspector.files import tables\ntables.write_ndjson(path, {}, map(stop, [1]))",
    "environment": """
from artifact_inspector.compiling.ask import environments
environments._find_pythons = lambda version: ["python"]
environments._install = lambda directory, *_: (directory.mkdir(), stop())
environments._create_environment(path, "3.1.0")""",
}


@needs_linux
@pytest.mark.parametrize("writer", _WRITERS)
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path, writer: str) -> None:
    from artifact_inspector.files.writer import write_text

    scratch._remove_stale_once.cache_clear()
    path = tmp_path / "written"
    program = f"import os, signal\nfrom pathlib import Path\npath = Path({str(path)!r})\n"
    program += f"def stop(*_): os.kill(os.getpid(), signal.SIGKILL)\n{_WRITERS[writer]}"
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [file.name.startswith(".writing-") for file in tmp_path.iterdir()] == [True]
    write_text(path, "text")
    assert list(tmp_path.iterdir()) == [path]


def test_names_have_the_host_the_boot_and_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with scratch_directory() as directory:
        assert f"inspect-kernel-{machine_name()}-{os.getpid()}-" in Path(directory).name
    monkeypatch.setattr(scratch.platform, "node", lambda: "../../ümlaut host")
    machine_name.cache_clear()
    assert machine_name().startswith("mlauthost.")
    monkeypatch.undo()
    machine_name.cache_clear()


_PUBLISH_IN_A_LOOP = """
import json, random, sys, threading
from pathlib import Path
from artifact_inspector.compiling.publishing import entry_metadata, publish, staging_directory
out, chance, refusals = Path(sys.argv[1]), random.Random(int(sys.argv[2])), []
def compile_once(number):
    try:
        staging = staging_directory(out)
        entry = staging / f"entry{number % 7}"
        entry.mkdir()
        (entry / "kernel.ptx").write_text("text")
        (entry / "kernel.json").write_text("{}")
        (entry / "__grp__kernel.json").write_text(json.dumps({"child_paths": {"kernel.ptx": "elsewhere"}}))
        if entry_metadata(publish(staging, entry.name, out)) is None:
            refusals.append("incomplete")
    except OSError as error:
        refusals.append(repr(error))
threads = [threading.Thread(target=compile_once, args=(number,)) for number in range(100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(refusals)
"""


@pytest.mark.long
@needs_linux
def test_two_pid_namespaces_publish_into_one_cache(tmp_path: Path) -> None:
    """Process IDs of one container mean nothing in the other: neither may remove the other's running compile."""
    namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    try:
        subprocess.run([*namespace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system gives no PID namespace")
    later_pid = ["sh", "-c", 'for n in 1 2 3 4 5; do true & done; wait; "$@"; exit', "sh"]
    runs = [
        subprocess.Popen(
            [*namespace, *(later_pid * seed), sys.executable, "-c", _PUBLISH_IN_A_LOOP, str(tmp_path), str(seed)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(2)
    ]
    assert [run.communicate(timeout=60)[0] for run in runs] == ["[]\n", "[]\n"]


@pytest.mark.long
@needs_linux
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (signal.SIGINT, signal.SIGHUP)),
    ],
)
@pytest.mark.parametrize(("words", "module"), [(["mcp", "--root", "fixtures"], "mcp"), (["lsp"], "pygls")])
def test_a_server_ends_although_its_client_keeps_its_input_open(
    words: list[str], module: str, number: signal.Signals
) -> None:
    pytest.importorskip(module)
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None}}
    if module == "mcp":
        call["params"] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        }
    body = json.dumps(call)
    program = [sys.executable, "-m", "artifact_inspector", *words]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        text = f"{body}\n" if module == "mcp" else f"Content-Length: {len(body)}\r\n\r\n{body}"
        server.stdin.write(text.encode())
        server.stdin.flush()
        server.stdout.read(1)  # it serves
        server.send_signal(number)
        try:
            server.wait(10)
        finally:
            server.kill()

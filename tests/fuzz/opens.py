"""What a command and all that it starts open, import and run, heard by the kernel (inotify) and by Python's audit hook.

inotify hears an open by any process, also one in the code of a compiler. Source: inotify(7), PEP 578.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OPENED = 0x20
_HOOK = """
import os, sys
_log = os.open(os.environ["OPENS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def _hear(event, arguments):
    if event in ("import", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
        os.write(_log, f"{event} {arguments[:2]!s:.400}\\n".encode(errors="replace"))
sys.addaudithook(_hear)
"""


@dataclass(frozen=True, slots=True)
class Heard:
    """What was heard of a command."""

    status: int | None
    """None if it did not end in time."""
    output: str
    opened: tuple[str, ...]
    """Watched files that were opened, imported or run."""
    events: tuple[str, ...]
    """Imports and starts of programs, by the command and every Python process that it starts."""
    peak_mib: int
    """Memory of the largest process."""


_RUN = """
import os, resource, sys
sys.path.pop(0)
from artifact_inspector.cli import main
def run():
    try:
        main()
    finally:
        own = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # without pytest's before exec
        peak = max(int(own.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
        sys.stderr.write(f"PEAK {peak >> 10}\\n")
"""
_SERVE = """
import importlib, json, pkgutil, sitecustomize, traceback
import artifact_inspector
for module in pkgutil.walk_packages(artifact_inspector.__path__, "artifact_inspector."):
    if not any(part in module.name for part in (".worker", ".capture", ".kernels", ".serving", "__main__", "pytest")):
        importlib.import_module(module.name)
for line in sys.stdin:
    request = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.chdir(request["directory"])
        for name, numbers in (("output", (1, 2)), ("log", (sitecustomize._log,)), ("input", (0,))):
            file = os.open(request[name], os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            for number in numbers:
                os.dup2(file, number)
        os.environ.update(request["environment"])
        sys.argv[1:] = request["words"]
        status = 1
        try:
            import __hello__  # the hook hears
            run()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def _environment(scratch: Path) -> dict[str, str]:
    hook = scratch / "hook"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(_HOOK)
    installed, home = Path.home() / ".cache" / "artifact-inspector" / "triton", scratch / "home" / "artifact-inspector"
    if installed.is_dir() and not home.exists():  # releases of Triton, for bisect
        home.mkdir(parents=True)
        (home / "triton").symlink_to(installed, target_is_directory=True)
    return {
        "PYTHONPATH": os.pathsep.join((str(hook), str(ROOT))),
        "OPENS_LOG": str(scratch / "log"),
        "XDG_CACHE_HOME": str(scratch / "home"),
        "PATH": os.pathsep.join((os.environ["PATH"], ".")),
    }


class WarmCommands:
    """A process that has imported the program, and forks for each command: a table of hundreds needs it."""

    def __init__(self, scratch: Path) -> None:
        environment = {**os.environ, **_environment(scratch)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _RUN + _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def run(self, words: Sequence[str], directory: Path, scratch: Path, limit: float) -> tuple[int | None, str]:
        """Exit status (None if it did not end in time) and output."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        output = scratch / "output"
        request = {
            "words": words, "directory": str(directory), "output": str(output), "log": str(scratch / "log"),
            "input": os.devnull, "environment": _environment(scratch),
        }  # fmt: skip
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            os.killpg(pid, signal.SIGKILL)

        timer = threading.Timer(limit, stop)
        timer.start()
        status = int(self.process.stdout.readline())
        timer.cancel()
        return None if is_late.is_set() else status, output.read_text(errors="replace")

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def listen(
    words: Sequence[str],
    directory: Path,
    watched: Sequence[Path],
    scratch: Path,
    limit: float,
    commands: WarmCommands | None = None,
) -> Heard:
    """Run `inspect-kernel` in a directory, and hear what is opened of the watched files."""
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    names = {libc.inotify_add_watch(queue, str(path).encode(), _OPENED): str(path) for path in watched}
    assert -1 not in names, os.strerror(ctypes.get_errno())
    log = scratch / "log"
    log.unlink(missing_ok=True)
    if commands is not None:
        status, output = commands.run(words, directory, scratch, limit)
    else:
        try:
            done = subprocess.run(
                [sys.executable, "-c", f"{_RUN}run()", *words], cwd=directory, capture_output=True, text=True,
                check=False, timeout=limit, env={**os.environ, **_environment(scratch)},
            )  # fmt: skip
            status, output = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            status, output = None, str(late)
    opened = []
    try:
        while content := os.read(queue, 1 << 16):
            at = 0
            while at < len(content):
                watch, _, _, length = struct.unpack_from("iIII", content, at)
                opened.append(names.get(watch, "?"))
                at += 16 + length
    except BlockingIOError:
        pass
    finally:
        os.close(queue)
    events = log.read_text(errors="replace").splitlines() if log.exists() else []
    peak = [int(line.split()[1]) for line in output.splitlines() if line.startswith("PEAK ")]
    return Heard(status, output, tuple(dict.fromkeys(opened)), tuple(events), max(peak, default=0))

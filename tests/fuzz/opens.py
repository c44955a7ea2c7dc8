"""What a command and all that it starts open, import and run, heard by the kernel (inotify) and by Python's audit hook.

inotify hears an open by any process, also one in the code of a compiler. Source: inotify(7), PEP 578.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
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


def listen(words: Sequence[str], directory: Path, watched: Sequence[Path], scratch: Path, limit: float) -> Heard:
    """Run `inspect-kernel` in a directory, and hear what is opened of the watched files."""
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    names = {libc.inotify_add_watch(queue, str(path).encode(), _OPENED): str(path) for path in watched}
    assert -1 not in names, os.strerror(ctypes.get_errno())
    hook, log = scratch / "hook", scratch / "log"
    hook.mkdir(exist_ok=True)
    (hook / "sitecustomize.py").write_text(_HOOK)
    log.unlink(missing_ok=True)
    starter = (
        "import resource, sys\nsys.path.pop(0)\nfrom artifact_inspector.cli import main\ntry:\n    main()\nfinally:\n"
        "    own = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"  # without pytest's before exec
        "    peak = max(int(own.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "    sys.stderr.write(f'PEAK {peak >> 10}\\n')\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(hook), str(ROOT))),
        "OPENS_LOG": str(log),
        "XDG_CACHE_HOME": str(scratch / "home"),
        "PATH": os.pathsep.join((os.environ["PATH"], ".")),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", starter, *words],
            cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=limit,
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

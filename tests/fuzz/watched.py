"""A command in a process whose every import, execution, unpickling and write is told of: `python watched.py LOG WORD…`.

Runs under `sys.addaudithook` (PEP 578), which no Python code can switch off again. Each event that matters is
a line of the log.
"""

from __future__ import annotations

import os
import sys

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = frozenset(
    [
        "os.remove",
        "os.rename",
        "os.mkdir",
        "os.rmdir",
        "os.chmod",
        "os.chown",
        "os.link",
        "os.symlink",
        "os.truncate",
        "os.utime",
        "shutil.rmtree",
        "shutil.move",
        "shutil.copyfile",
    ]
)
_RUNS = frozenset(
    [
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "os.forkpty",
        "pty.spawn",
        "ctypes.dlopen",
        "pickle.find_class",
        "socket.connect",
        "socket.bind",
    ]
)


def watch(log: int) -> None:
    """Have each event of this process written to a file."""

    def told(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if (isinstance(flags, int) and flags & _WRITES) or (isinstance(mode, str) and set(mode) & set("wax+")):
                os.write(log, f"write {path}\n".encode())
        elif event == "import":
            os.write(log, f"import {arguments[0]} {arguments[1]}\n".encode())
        elif event in ("compile", "exec"):
            code = arguments[-1]
            os.write(log, f"{event} {getattr(code, 'co_filename', code)!s:.200}\n".encode())
        elif event in _CHANGES:
            os.write(log, f"change {event} {arguments[0]}\n".encode())
        elif event in _RUNS:
            os.write(log, f"run {event} {arguments[:2]!s:.300}\n".encode())
        elif event == "sqlite3.connect":
            os.write(log, f"write {arguments[0]!s}\n".encode())

    sys.addaudithook(told)


if __name__ == "__main__":
    out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.argv[:] = ["inspect-kernel", *sys.argv[2:]]
    watch(out)
    from artifact_inspector.cli import main

    main()

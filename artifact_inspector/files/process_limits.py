"""Limits on processes that work on files of a cache: processor time, memory, file sizes, and open files.

Limits of time, memory and size are those of Linux (setrlimit). Files are restricted with Landlock where the
kernel has it (Linux 5.19). A process cannot lift either of them, and its children inherit both.

Source: setrlimit(2), prlimit(2), landlock(7), linux/landlock.h.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

from artifact_inspector.model.limits import COMPILE_MIB, COMPILE_SECONDS, TOOL_FILE_MIB, TOOL_SECONDS

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
_READ = 1 << 0 | 1 << 2 | 1 << 3
"""Execute, read a file, list a directory."""
_HANDLED = (1 << 14) - 1
"""Every right of the second version of Landlock: the above, all that write, create or remove, and moving a
file to another directory, which the first version refuses everywhere."""
_OF_FILES = 1 << 0 | 1 << 1 | 1 << 2
"""Rights that a rule for a single file can have."""
_SYSTEM = (
    *("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix", "/etc/ld.so.cache", "/dev/null", "/dev/urandom"),
    *("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"),
)
_TOOLS = ("PTXAS", "PTXAS_BLACKWELL", "CUOBJDUMP", "NVDISASM", "HIP_LLD", "LIBDEVICE")
"""Tools and libraries that the user chose by `TRITON_NAME_PATH`."""
PYTHON_OF_LINKER = "ARTIFACT_INSPECTOR_LINKER_PYTHON"
"""Environment variable: directories of the Python that a linker script runs with."""


def limit_tool(pid: int, memory_mib: int) -> None:
    """Limit a child that was just started: a disassembler or an assembler."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        _limit(pid, memory_mib << 20, TOOL_SECONDS.value)


def _limit(pid: int, address_space: int, seconds: int) -> None:
    import resource  # not available on Windows

    kinds = (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    for kind, bound in zip(kinds, (address_space, seconds, TOOL_FILE_MIB.value << 20, 0), strict=True):
        _, inherited = resource.prlimit(pid, kind)
        bound = bound if inherited == resource.RLIM_INFINITY else min(bound, inherited)
        resource.prlimit(pid, kind, (bound, bound))


def limit_compile(readable: Iterable[str | Path], writable: Iterable[str | Path]) -> None:
    """Limit this process, which compiles what a cache holds, and the tools that it starts.

    Args:
        readable: files and directories that it may read beside those of the system and of this Python.
    """
    if sys.platform != "linux":
        return
    address_space = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    seconds = int(sum(os.times()[:2])) + 1
    _limit(0, address_space + (COMPILE_MIB.value << 20), seconds + COMPILE_SECONDS.value)
    tools = [os.environ.get(f"TRITON_{name}_PATH", "") for name in _TOOLS]
    linker = os.environ.get(PYTHON_OF_LINKER, "").split(os.pathsep)
    tool_paths: list[str | Path] = [*(Path(tool).parent for tool in tools if tool), *linker]
    paths: list[str | Path] = [*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *tool_paths, *readable]
    _restrict_files([path for path in paths if path], writable)


def _restrict_files(readable: Iterable[str | Path], writable: Iterable[str | Path]) -> None:
    """Let this process open no other files; nothing where the kernel has no Landlock."""
    import ctypes  # opens a library when it is imported, which reading a cache must not do

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1) < 2:
        return
    ruleset = libc.syscall(_CREATE_RULESET, struct.pack("Q", _HANDLED), ctypes.c_size_t(8), 0)
    if ruleset < 0:
        return
    try:
        rules: list[tuple[str | Path, int]] = [(path, _READ) for path in readable]
        for path, rights in [*rules, *((path, _HANDLED) for path in ("/dev/null", *writable))]:
            with contextlib.suppress(OSError):
                file = os.open(path, os.O_PATH | os.O_CLOEXEC)
                try:
                    allowed = rights if Path(path).is_dir() else rights & _OF_FILES
                    libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, file), 0)
                finally:
                    os.close(file)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        libc.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)

"""Isolated environments in the user's cache directory, one per Triton version, created once and reused.

`<cache>/triton/<version>/` is a virtual environment with that Triton and the packages it needs to compile.
An environment that the user put there, or linked, is used as well. It imports this package from our own
directory. If both Pythons have the same version, it also imports the caller's packages.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from artifact_inspector.compiling.ask.process import Interpreter, this_interpreter
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.kept import user_cache
from artifact_inspector.files.limited import PYTHON_OF_LINKER
from artifact_inspector.files.writing import write_text
from artifact_inspector.model import Release, TritonVersion

_ROOT = Path(__file__).resolve().parents[3]
_OLDEST = (2, 1)
_PYTHON_3 = {
    (2, 1): (7, 11),
    (2, 2): (8, 12),
    (2, 3): (8, 12),
    (3, 0): (8, 12),
    (3, 1): (8, 12),
    (3, 2): (9, 13),
    (3, 3): (9, 13),
    (3, 4): (9, 13),
}
"""Triton → the oldest and newest Python 3 with wheels, as the package index lists them. For newer releases,
the index decides."""
_OUR_OLDEST = 10
_LATEST = {
    (2, 1): "2.1.0",
    (2, 2): "2.2.0",
    (2, 3): "2.3.1",
    (3, 0): "3.0.0",
    (3, 1): "3.1.0",
    (3, 2): "3.2.0",
    (3, 3): "3.3.1",
    (3, 4): "3.4.0",
    (3, 5): "3.5.1",
    (3, 6): "3.6.0",
    (3, 7): "3.7.1",
}
"""The last release of each minor version."""
_NEWER = ("3.8.0", "3.9.0")
"""Releases of minor versions with a single release."""
_NUMBERS = re.compile(r"\d+\.\d+(\.\d+)?")
_LINKER = """#!{python} -E
# Triton before 3.5 links AMD kernels with a separate program; newer releases contain the same linker.
import sys
from triton._C.libtriton import amd
arguments = sys.argv[1:]
if "--version" in arguments:
    print("LLD of Triton {version}")
else:
    amd.link_hsaco(arguments[arguments.index("-shared") + 1], arguments[arguments.index("-o") + 1])
"""
_BOOT = """
import sys
sys.path[:] = [path for path in sys.path if path]  # the working directory may hold a json.py
import json
from importlib.machinery import PathFinder
root, lent = json.loads(sys.argv[1])
class Lent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [root]) if name == "artifact_inspector" else None
sys.meta_path.insert(0, Lent)
from artifact_inspector.compiling.worker.__main__ import main
main(lent)
"""


def cache_directory() -> Path:
    """The user's cache directory for this tool, which may not exist yet.

    Raises:
        CompileError: there is no home directory.
    """
    place = user_cache()
    if place is None:
        raise CompileError("There is no home directory.", "Set XDG_CACHE_HOME to a directory for caches.")
    return place


def releases_between(first: str, last: str) -> tuple[str, ...]:
    """Two releases and the known ones between them, oldest first.

    Raises:
        UsageError: one of them is not a version.
    """
    ends = sorted((parse_triton(first)[0], parse_triton(last)[0]), key=_numbers)
    inner = (
        one for one in (*_LATEST.values(), *_NEWER) if _numbers(ends[0]) < _numbers(one) < _numbers(ends[1])
    )
    return (ends[0], *sorted(inner, key=_numbers), ends[1])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def parse_triton(text: str) -> tuple[str, Path | None]:
    """Parse `3.2.0`, `3.2` or `3.2.0=PYTHON` into the version and the Python, if one is given.

    Raises:
        UsageError: the text is not a version, or the version is too old.
    """
    version, equals, python = text.partition("=")
    written = TritonVersion(version.strip().removeprefix("v"))
    minor = written.release
    if minor is None or not _NUMBERS.fullmatch(written) or (equals and not python.strip()):
        raise UsageError(
            f"{text!r} is not a version of Triton.", "Write e.g. 3.2.0, or 3.2.0=/path/to/python."
        )
    if minor < _OLDEST:
        raise UsageError(
            f"Triton {version} is too old to compile with.", "The oldest supported version is 2.1."
        )
    whole = written if written.count(".") == 2 else _LATEST.get(minor, f"{minor[0]}.{minor[1]}.0")
    return whole, Path(python.strip()).expanduser() if equals else None


def find_interpreter(
    version: str, python: Path | None = None, *, notice: Callable[[str], None] = lambda sentence: None
) -> Interpreter:
    """A Python with that Triton: the one given, this one, one in the cache directory, or a new one there.

    Args:
        version: as `parse_triton` returns it.
        python: the Python to use, if given.
        notice: called with a sentence before a slow step.

    Raises:
        CompileError: there is none and none can be created; the remedy says why.
    """
    if python is not None:
        found = _version_in(python)
        if found != version:
            has = "no Triton" if found is None else f"Triton {found}"
            raise CompileError(
                f"{python} has {has}, not {version}.", "Name the Python of another environment."
            )
        return _isolated(python, version)
    if _installed_here() == version:
        return this_interpreter()
    if sys.platform != "linux":
        this_interpreter()  # raises: Triton is not available on this system
    place = cache_directory() / "triton" / version
    if _version_in(place / "bin" / "python") != version:
        with _locked(place):
            if _version_in(place / "bin" / "python") != version:
                notice(f"creating an environment with Triton {version} in {place}")
                _make(place, version)
    return _isolated(place / "bin" / "python", version)


def _installed_here() -> str | None:
    try:
        return installed("triton")
    except PackageNotFoundError:
        return None


def _version_in(python: Path) -> str | None:
    """The version of Triton installed for a Python, without importing it; None if there is none."""
    code = "from importlib.metadata import version; print(version('triton'))"
    try:
        answer = subprocess.run(
            [python, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _isolated(python: Path, version: str) -> Interpreter:
    same = _minor_of(python) == sys.version_info[1]
    lent = [path for path in sys.path if path] if same else []
    environment = {
        "PYTHONPATH": "",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # Triton 2.3 hashes sets into its cache keys
    }
    if "TRITON_HIP_LLD_PATH" not in os.environ and (linker := _linker(version)) is not None:
        environment["TRITON_HIP_LLD_PATH"] = str(linker)
        environment[PYTHON_OF_LINKER] = os.pathsep.join((sys.prefix, sys.base_prefix))
    command = [str(python), "-c", _BOOT, json.dumps([str(_ROOT), lent])]
    return Interpreter(command, environment, version, lent)


def _linker(version: str) -> Path | None:
    """An ld.lld for Tritons that need one: the system's, or a script that calls the linker in our Triton."""
    if _minor(version) >= (3, 5):
        return None
    if found := shutil.which("ld.lld"):
        return Path(found)
    here = _installed_here()
    if here is None or _minor(here) < (3, 5):
        return None
    script = cache_directory() / "bin" / "ld.lld"
    text = _LINKER.format(python=sys.executable, version=here)
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        write_text(script, text, 0o755)
    return script


def _make(place: Path, version: str) -> None:
    """Create the environment in a temporary directory, then move it into place: it is never partial."""
    aside = place.with_name(f".{place.name}-{os.getpid()}")
    wanted = f"Triton {version}"
    pythons = _pythons(version)
    if not pythons and shutil.which("uv") is None:
        _, newest = _PYTHON_3[_minor(version)]
        raise CompileError(
            f"{wanted} has wheels for Python 3.{newest} and older, and none of these is installed.",
            f"Install Python 3.{newest}, or uv, which downloads one.",
        )
    complaint = ""
    try:
        for python in pythons or [f"3.{_PYTHON_3[_minor(version)][1]}"]:
            shutil.rmtree(aside, ignore_errors=True)
            complaint = _install(aside, python, _packages(version))
            if not complaint:
                shutil.rmtree(place, ignore_errors=True)
                aside.rename(place)
                return
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    raise CompileError(
        f"{wanted} could not be installed: {complaint}",
        f"Connect to a package index, or name a Python that has it: --triton {version}=/path/to/python.",
    )


def _packages(version: str) -> list[str]:
    """The packages that a compile needs; the wheels of 2.x declare more (torch, cmake …)."""
    packages = [f"triton=={version}"]
    if _minor(version) < (3, 3):
        packages += ["setuptools<80", "filelock"]
    if (2, 2) <= _minor(version) < (3, 0):
        packages.append("numpy<2")
    return packages


def _install(place: Path, python: str, packages: Sequence[str]) -> str:
    """Create an environment and install packages; returns an error message, empty on success."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if uv := shutil.which("uv"):
        steps = [
            [uv, "venv", "--quiet", "--python", python, str(place)],
            [
                uv,
                "pip",
                "install",
                "--quiet",
                "--python",
                str(place / "bin" / "python"),
                "--no-deps",
                *packages,
            ],
        ]
    else:
        steps = [
            [python, "-m", "venv", str(place)],
            [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", *packages],
        ]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{step[0]}: {error.strerror}."
        if done.returncode != 0:
            said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            errors = [line for line in said if "error" in line.lower()]
            return (errors or said or ["no reason was given"])[-1].strip()
    return ""


def _pythons(version: str) -> list[str]:
    """Pythons of this machine that Triton may have wheels for: this one, then from the newest on."""
    oldest, newest = _PYTHON_3.get(_minor(version), (0, 99))
    candidates = [sys.executable] if _fits(sys.version_info[1], oldest, newest) else []
    for minor in range(min(newest, 20), max(oldest, _OUR_OLDEST) - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if minor != sys.version_info[1] and found is not None and _minor_of(Path(found)) == minor:
            candidates.append(found)
    return candidates


def _fits(minor: int, oldest: int, newest: int) -> bool:
    return max(oldest, _OUR_OLDEST) <= minor <= newest


def _minor_of(python: Path) -> int | None:
    """N of Python 3.N; None if it does not run."""
    try:
        answer = subprocess.run(
            [python, "-I", "-c", "import sys; print(sys.version_info[1])"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return int(answer.stdout) if answer.returncode == 0 else None


def _minor(version: str) -> Release:
    release = TritonVersion(version).release
    assert release is not None, version  # `parse_triton` returned it
    return release


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold a lock, so that one process at a time creates an environment."""
    import fcntl  # not available on Windows, where no environment is created

    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

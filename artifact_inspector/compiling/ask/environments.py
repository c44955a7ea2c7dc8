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
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from artifact_inspector.compiling.ask.process import Interpreter, current_interpreter
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.process_limits import PYTHON_OF_LINKER
from artifact_inspector.files.scratch import prefix_beside
from artifact_inspector.files.tools import find_on_path
from artifact_inspector.files.writer import user_cache, write_text
from artifact_inspector.model import TritonVersion

_ROOT = Path(__file__).resolve().parents[3]
_OLDEST_TRITON = (2, 1)
_PYTHON_3: dict[tuple[int, ...], tuple[int, int]] = {
    (2, 1): (7, 11), (2, 2): (8, 12), (2, 3): (8, 12), (3, 0): (8, 12), (3, 1): (8, 12), (3, 2): (9, 13),
    (3, 3): (9, 13), (3, 4): (9, 13),
}  # fmt: skip
"""Triton → the oldest and newest Python 3 with wheels, as the package index lists them. For newer releases, the index
decides."""
_OLDEST_PYTHON = 10
_LATEST_RELEASES = (
    *("2.1.0", "2.2.0", "2.3.1", "3.0.0", "3.1.0", "3.2.0", "3.3.1", "3.4.0"),
    *("3.5.1", "3.6.0", "3.7.1", "3.8.0", "3.9.0"),
)
"""The last release of each minor version."""
_VERSION_PATTERN = re.compile(r"\d+\.\d+(\.\d+)?")
_LINKER_SCRIPT = """#!{python} -E
# Triton before 3.5 links AMD kernels with a separate program; newer releases contain the same linker.
import sys
from triton._C.libtriton import amd
arguments = sys.argv[1:]
if "--version" in arguments:
    print("LLD of Triton {version}")
else:
    amd.link_hsaco(arguments[arguments.index("-shared") + 1], arguments[arguments.index("-o") + 1])
"""
_BOOT_SCRIPT = """
import sys
sys.path[:] = [path for path in sys.path if path]  # the working directory may hold a json.py
import json
from importlib.machinery import PathFinder
root, import_paths = json.loads(sys.argv[1])
class RootFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [root]) if name == "artifact_inspector" else None
sys.meta_path.insert(0, RootFinder)
from artifact_inspector.compiling.worker.__main__ import main
main(import_paths)
"""


_VERSION_QUERY = """
from importlib.metadata import packages_distributions, version
print(version(next(iter(packages_distributions()["triton"]))))
"""


def cache_directory() -> Path:
    """The user's cache directory for this tool, which may not exist yet.

    Raises:
        CompileError: there is no home directory.
    """
    directory = user_cache()
    if directory is None:
        raise CompileError("There is no home directory.", "Set XDG_CACHE_HOME to a directory for caches.")
    return directory


def releases_between(first: str, last: str) -> tuple[str, ...]:
    """Two releases and the known ones between them, oldest first.

    Raises:
        UsageError: one of them is not a version.
    """
    first_version, last_version = sorted((parse_triton(text)[0] for text in (first, last)), key=_numbers)
    inner = [
        release for release in _LATEST_RELEASES if _numbers(first_version) < _numbers(release) < _numbers(last_version)
    ]
    return (first_version, *inner, last_version)


def _numbers(version: str) -> tuple[int, ...]:
    return TritonVersion(version).numbers


def parse_triton(text: str) -> tuple[str, Path | None]:
    """Parse `3.2.0`, `3.2` or `3.2.0=PYTHON` into the version and the Python, if one is given.

    Raises:
        UsageError: the text is not a version, or the version is too old.
    """
    version, equals, python = text.partition("=")
    parsed_version = TritonVersion(version.strip().removeprefix("v"))
    minor = parsed_version.release
    if minor is None or not _VERSION_PATTERN.fullmatch(parsed_version) or (equals and not python.strip()):
        raise UsageError(f"{text!r} is not a version of Triton.", "Write e.g. 3.2.0, or 3.2.0=/path/to/python.")
    if minor < _OLDEST_TRITON:
        raise UsageError(f"Triton {version} is too old to compile with.", "The oldest supported version is 2.1.")
    if not parsed_version.is_exact:
        latest = (version for version in _LATEST_RELEASES if _numbers(version)[:2] == minor)
        parsed_version = TritonVersion(next(latest, f"{parsed_version}.0"))
    return parsed_version, Path(python.strip()).expanduser() if equals else None


def find_interpreter(
    version: str,
    python: Path | None = None,
    *,
    notice: Callable[[str], None] = lambda sentence: None,
    may_create: bool = True,
) -> Interpreter:
    """A Python with that Triton: the one given, this one, one in the cache directory, or a new one there.

    Args:
        may_create: False if only a cache names the version: it does not choose what is downloaded.

    Raises:
        CompileError: there is none and none can be created; the remedy says why.
    """
    if python is not None:
        installed_version = _find_triton_version(python)
        if installed_version != version:
            has = "no Triton" if installed_version is None else f"Triton {installed_version}"
            raise CompileError(f"{python} has {has}, not {version}.", "Name the Python of another environment.")
        return _isolated_interpreter(python, version)
    if own_triton_version() == version:
        return current_interpreter()
    if sys.platform != "linux":
        current_interpreter()  # raises: Triton is not available on this system
    directory = cache_directory() / "triton" / version
    if _find_triton_version(directory / "bin" / "python") != version:
        if not may_create:
            raise CompileError(
                f"Triton {version}, which the cache names, is not installed; "
                f"inspect-kernel passes CACHE NAME --triton {version} installs it."
            )
        import fcntl  # not available on Windows, where no environment is created

        directory.parent.mkdir(parents=True, exist_ok=True)
        with directory.with_name(f".{directory.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time creates an environment
            if _find_triton_version(directory / "bin" / "python") != version:
                notice(f"creating an environment with Triton {version} in {directory}")
                _create_environment(directory, version)
    return _isolated_interpreter(directory / "bin" / "python", version)


def own_triton_version() -> str | None:
    """The installed release; None without Triton."""
    try:
        return installed("triton")
    except PackageNotFoundError:
        return None


def _find_triton_version(python: Path) -> str | None:
    """The version of the module `triton` of a Python, whatever distribution has it; None if there is none.

    It is not imported. A fork's local part (`3.7.4+fb`) is no part of its release.
    """
    return _query_python(python, _VERSION_QUERY)


def _python_minor(python: Path) -> str | None:
    """N of Python 3.N; None if it does not run."""
    return _query_python(python, "import sys; print(sys.version_info[1])")


def _query_python(python: Path, code: str) -> str | None:
    """What a line of code prints in an isolated Python; None if it fails."""
    try:
        process = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None


def _isolated_interpreter(python: Path, version: str) -> Interpreter:
    is_same_python = _python_minor(python) == str(sys.version_info[1])
    import_paths = [path for path in sys.path if path] if is_same_python else []
    environment = {
        "PYTHONPATH": "",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",  # Triton 2.3 hashes sets into its cache keys
    }
    if "TRITON_HIP_LLD_PATH" not in os.environ and (linker := _find_linker(version)) is not None:
        environment["TRITON_HIP_LLD_PATH"] = str(linker)
        environment[PYTHON_OF_LINKER] = os.pathsep.join((sys.prefix, sys.base_prefix))
    command = [str(python), "-c", _BOOT_SCRIPT, json.dumps([str(_ROOT), import_paths])]
    return Interpreter(command, environment, version, import_paths)


def _find_linker(version: str) -> Path | None:
    """An ld.lld for Tritons that need one: the system's, or a script that calls the linker in our Triton."""
    if _numbers(version) >= (3, 5):
        return None
    if linker_path := find_on_path(["ld.lld"]):  # never from the working directory, which may be a cache
        return linker_path
    own_version = own_triton_version()
    if own_version is None or _numbers(own_version) < (3, 5):
        return None
    script = cache_directory() / "bin" / "ld.lld"
    text = _LINKER_SCRIPT.format(python=sys.executable, version=own_version)
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        write_text(script, text, 0o755)
    return script


def _create_environment(directory: Path, version: str) -> None:
    """Create the environment in a temporary directory, then move it into place: it is never partial."""
    temporary_directory = directory.with_name(f"{prefix_beside(directory)}environment")
    triton_name = f"Triton {version}"
    pythons = _find_pythons(version)
    if not pythons and find_on_path(["uv"]) is None:
        _, newest = _PYTHON_3[_numbers(version)[:2]]
        raise CompileError(
            f"{triton_name} has wheels for Python 3.{newest} and older, and none of these is installed.",
            f"Install Python 3.{newest}, or uv, which downloads one.",
        )
    complaint = ""
    try:
        for python in pythons or [f"3.{_PYTHON_3[_numbers(version)[:2]][1]}"]:
            shutil.rmtree(temporary_directory, ignore_errors=True)
            complaint = _install(temporary_directory, python, _required_packages(version))
            if not complaint:
                shutil.rmtree(directory, ignore_errors=True)
                temporary_directory.rename(directory)
                return
    finally:
        shutil.rmtree(temporary_directory, ignore_errors=True)
    raise CompileError(
        f"{triton_name} could not be installed: {complaint}",
        f"Connect to a package index, or name a Python that has it: --triton {version}=/path/to/python.",
    )


def _required_packages(version: str) -> list[str]:
    """The packages that a compile needs; the wheels of 2.x declare more (torch, cmake …)."""
    packages = [f"triton=={version}"]
    if _numbers(version) < (3, 3):
        packages += ["setuptools<80", "filelock"]
    if (2, 2) <= _numbers(version) < (3, 0):
        packages.append("numpy<2")
    return packages


def _install(directory: Path, python: str, packages: Sequence[str]) -> str:
    """Create an environment and install packages; returns an error message, empty on success."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    new_python = str(directory / "bin" / "python")
    create, install = [python, "-m", "venv"], [new_python, "-m", "pip", "install"]
    if uv := find_on_path(["uv"]):
        create = [str(uv), "venv", "--quiet", "--python", python]
        install = [str(uv), "pip", "install", "--python", new_python]
    for step in ([*create, str(directory)], [*install, "--quiet", "--no-deps", *packages]):
        try:
            process = subprocess.run(step, capture_output=True, text=True, check=False)
        except OSError as error:
            return f"{step[0]}: {error.strerror}."
        if process.returncode != 0:
            output_lines = [line for line in (process.stderr or process.stdout).splitlines() if line.strip()]
            errors = [line for line in output_lines if "error" in line.lower()]
            return (errors or output_lines or ["no reason was given"])[-1].strip()
    return ""


def _find_pythons(version: str) -> list[str]:
    """Pythons of this machine that Triton may have wheels for: this one, then from the newest on."""
    oldest, newest = _PYTHON_3.get(_numbers(version)[:2], (0, 99))
    oldest, own = max(oldest, _OLDEST_PYTHON), sys.version_info[1]
    candidates = [sys.executable] if oldest <= own <= newest else []
    for minor in range(min(newest, 20), oldest - 1, -1):
        python_path = find_on_path([f"python3.{minor}"])
        if minor != own and python_path is not None and _python_minor(python_path) == str(minor):
            candidates.append(str(python_path))
    return candidates

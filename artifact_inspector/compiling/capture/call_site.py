"""Find the file and line of a program's statement that led to a launch."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import NamedTuple

_OWN = str(Path(__file__).parents[1])
_STANDARD = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple(
    {
        f"{path}{os.sep}"
        for path in (
            sysconfig.get_path("purelib"),
            sysconfig.get_path("platlib"),
            *site.getsitepackages(),
            *(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")),
        )
    }
)
_LIBRARY_PACKAGES = ("triton", "torch")
"""Packages whose frames lie between a program and its launches."""
# code that they generate has no module name, and a file name without a file
_GENERATED = tuple(f"{root}{name}{os.sep}" for root in ("", *_INSTALLED) for name in _LIBRARY_PACKAGES)


class CallSite(NamedTuple):
    """A statement of the running program."""

    line: str
    """`file:line` of the statement itself, which may be in a library's wrapper."""
    caller: str
    """`file:line` of the program's own statement: the innermost frame outside installed packages."""


def find_call_site() -> CallSite:
    """The statement of the program that called into Triton, torch or this package."""
    nearest = caller = generated_line = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == "<string>":  # `python -c`, or a function that Triton or torch generated
            generated_line = f"{file}:{frame.f_lineno}"
        elif not _is_library_frame(frame, file):
            nearest = nearest or _format_location(file, frame.f_lineno)
            if not file.startswith(_INSTALLED):
                caller = _format_location(file, frame.f_lineno)
                break
        frame = frame.f_back
    nearest = nearest or generated_line or "?"
    return CallSite(nearest, caller or generated_line or nearest)


def _is_library_frame(frame: FrameType, file: str) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    if file.startswith((_OWN, "<frozen", *_GENERATED)) or module.partition(".")[0] in _LIBRARY_PACKAGES:
        return True
    return file.startswith(_STANDARD) and not file.startswith(_INSTALLED)


def _format_location(file: str, line: int) -> str:
    """The path relative to the current directory or to installed packages, or else absolute."""
    for root in (*_INSTALLED, f"{os.getcwd()}{os.sep}"):  # noqa: PTH109 - called at every launch
        if file.startswith(root):
            file = file[len(root) :]
            break
    return f"{file}:{line}"

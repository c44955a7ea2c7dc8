"""The command `inspect-kernel`: options to inspection, inspection to report, report to exit code.

One module per command: every module here without a leading underscore registers its command on the
application when it is imported. A run that starts with a command or a directory imports only that command
and the default one. A run with only a directory does not import typer at all.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._commands import COMMANDS, DEFAULT_COMMAND, PYTHON_SOURCE
from artifact_inspector.cli._exit import INTERRUPTED, exit_codes, report_error, report_write_error
from artifact_inspector.errors import CacheError
from artifact_inspector.files.lifetime import end_on_signals

if TYPE_CHECKING:
    from typer import Typer

    from artifact_inspector.cli._app import app

__all__ = ["COMMANDS", "app", "main"]

_MODULE_BY_COMMAND = {"bisect": "passes", "check-memory": "check_memory", "demo": "compile", "try": "trial"}
"""Command → module that defines it, where the two names differ."""

COMPLETION_VARIABLE = "_INSPECT_KERNEL_COMPLETE"
"""Set by a shell that completes a command line."""


def __getattr__(name: str) -> object:
    """The application with all its commands, built on first use."""
    if name != "app":
        raise AttributeError(name)
    return _with_commands()


def _with_commands(modules: Collection[str] = ()) -> Typer:
    """The application with the commands of these modules; of all modules by default."""
    from pkgutil import iter_modules

    from artifact_inspector.cli._app import app

    for module in (module_info.name for module_info in iter_modules(__path__) if not module_info.name.startswith("_")):
        if not modules or module in modules:
            import_module(f"{__name__}.{module}")
    return app


def _required_modules(arguments: list[str]) -> Collection[str]:
    """The modules that a command line needs; empty for all of them."""
    if COMPLETION_VARIABLE in os.environ:
        return ()
    commands = [argument for argument in arguments if argument in COMMANDS]
    if any(PYTHON_SOURCE.fullmatch(argument) for argument in arguments):
        commands.append("compile")
    return {_MODULE_BY_COMMAND.get(name, name) for name in (DEFAULT_COMMAND, *commands)}


def is_default_command(arguments: list[str]) -> bool:
    """Whether a command line runs the default command: it starts with a directory and requests no help."""
    if (
        not arguments
        or arguments[0] in COMMANDS
        or arguments[0].startswith("-")
        or not {"-h", "--help"}.isdisjoint(arguments)
    ):
        return False
    return os.path.isdir(arguments[0])  # noqa: PTH112 - pathlib raises where the name is too long


GC_THRESHOLD = 50_000
"""New objects between two garbage collections. Python's default of 700 costs a tenth of the start time."""


def main() -> None:
    """Run the command on the process's arguments."""
    gc.set_threshold(GC_THRESHOLD)
    if sys.platform != "win32":
        end_on_signals()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # the parent process closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):  # typer's own messages may hold any character
            stream.reconfigure(errors="backslashreplace")
    arguments = sys.argv[1:]
    try:
        _require_working_directory()
        if len(arguments) == 1 and is_default_command(arguments):
            _list_cache(Path(arguments[0]))
        else:
            app = _with_commands(_required_modules(arguments))
            app(prog_name="inspect-kernel")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:  # raised while help is printed, outside of `exit_codes`
        sys.exit(report_write_error(error))
    finally:
        gc.freeze()  # skip the collection that Python runs at exit


def _require_working_directory() -> None:
    """Exit where the working directory was deleted: relative paths and source files depend on it."""
    try:
        os.getcwd()  # noqa: PTH109 - pathlib costs an import here
    except OSError:
        report_error(
            CacheError(
                "The working directory no longer exists.",
                "Change to an existing directory (cd), then run the command again.",
            )
        )


def _list_cache(cache: Path) -> None:
    """Run the default command on one directory, without typer."""
    from artifact_inspector.cli._groups import ListOptions, MachineCode, Selection
    from artifact_inspector.cli._listing import print_cache

    with exit_codes(json=False):
        print_cache(Selection(cache), MachineCode(), ListOptions())

"""The command `inspect-kernel`: options to inspection, inspection to report, report to exit code.

One module per command: every module here without a leading underscore hangs its command on the
application when it is imported. All are imported when the application is asked for; a run that begins with a
command or a directory needs but its own and the default one, and a directory alone not even typer.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli._exit import INTERRUPTED, exit_codes, unwritten

if TYPE_CHECKING:
    from typer import Typer

    from artifact_inspector.cli._app import app

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = frozenset({
    "bandwidth", "baseline", "bench", "bisect", "capture", "check", "compile", "demo", "diff", "findings",
    "graph", "index", "inspect", "lsp", "matrix", "mcp", "passes", "predict", "pressure", "rank", "report",
    "schema", "skill", "timeline", "try", "watch", "why",
})  # fmt: skip
"""By name: a directory of such a name is not what is meant."""
_HOMES = {"bisect": "passes", "demo": "compile", "skill": "mcp", "try": "trial"}
"""Commands that stand in a module of another name."""


def __getattr__(name: str) -> object:
    """The application with all its commands, when it is first asked for."""
    if name != "app":
        raise AttributeError(name)
    return _with_commands()


def _with_commands(wanted: Collection[str] = ()) -> Typer:
    """The application with the commands of some modules, or of all."""
    from pkgutil import iter_modules

    from artifact_inspector.cli._app import app

    for module in (one.name for one in iter_modules(__path__) if not one.name.startswith("_")):
        if not wanted or module in wanted:
            import_module(f"{__name__}.{module}")
    return app


def _wanted(words: list[str]) -> Collection[str]:
    """The modules that a command line needs; none where that takes reading it."""
    if is_default(words):
        return ("inspect",)
    return ("inspect", _HOMES.get(words[0], words[0])) if words and words[0] in COMMANDS else ()


def is_default(words: list[str]) -> bool:
    """Whether a command line asks for the default command, by a directory in front and for no help."""
    if (
        not words
        or words[0] in COMMANDS
        or words[0].startswith("-")
        or not {"-h", "--help"}.isdisjoint(words)
    ):
        return False
    return os.path.isdir(words[0])  # noqa: PTH112 - a name of any length


SELDOM = 50_000
"""New objects after which Python looks for cycles: 700 by default, which is a tenth of what a start takes."""


def main() -> None:
    """Run the command on the process's arguments."""
    gc.set_threshold(SELDOM)
    if sys.platform != "win32":  # who is asked to end leaves no directory behind; what it forks just ends
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # who started it closed them
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    words = sys.argv[1:]
    try:
        if len(words) == 1 and is_default(words):
            _list(Path(words[0]))
        else:
            app = _with_commands(_wanted(words))
            app(prog_name="inspect-kernel")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:  # of the help
        sys.exit(unwritten(error))
    finally:
        gc.freeze()  # a process that ends would look for cycles twice


def _list(cache: Path) -> None:
    """What the application does with a directory alone."""
    from artifact_inspector.cli._showing import report

    with exit_codes(json=False):
        report(cache)

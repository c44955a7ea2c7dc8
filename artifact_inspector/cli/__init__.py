"""The command `inspect-kernel`: options to inspection, inspection to report, report to exit code.

One module per command: every module here without a leading underscore hangs its command on the
application when it is imported. All are imported when the application is asked for; a run that begins with a
directory needs but one.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from artifact_inspector.cli._app import DEFAULT_COMMAND
from artifact_inspector.cli._app import app as _app
from artifact_inspector.cli._exit import INTERRUPTED, unwritten

if TYPE_CHECKING:
    from artifact_inspector.cli._app import app

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = frozenset({
    "bandwidth", "baseline", "bench", "bisect", "capture", "check", "compile", "demo", "diff", "findings",
    "graph", "index", "inspect", "lsp", "matrix", "mcp", "passes", "predict", "pressure", "rank", "report",
    "schema", "skill", "timeline", "try", "watch", "why",
})  # fmt: skip
"""By name: a directory of such a name is not what is meant."""


def __getattr__(name: str) -> object:
    """The application with all its commands, when it is first asked for."""
    if name != "app":
        raise AttributeError(name)
    for module in iter_modules(__path__):
        if not module.name.startswith("_"):
            import_module(f"{__name__}.{module.name}")
    return _app


def is_default(words: list[str]) -> bool:
    """Whether a command line asks for the default command, by a directory in front and for no help."""
    if not words or words[0] in COMMANDS or not {"-h", "--help"}.isdisjoint(words):
        return False
    return os.path.isdir(words[0])  # noqa: PTH112 - a name of any length


SELDOM = 50_000
"""New objects after which Python looks for cycles: 700 by default, which is a tenth of what a start takes."""


def main() -> None:
    """Run the command on the process's arguments."""
    gc.set_threshold(SELDOM)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # who started it closed them
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    if is_default(sys.argv[1:]):
        import_module(f"{__name__}.{DEFAULT_COMMAND}")
    else:
        __getattr__("app")
    try:
        _app(prog_name="inspect-kernel")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:  # of the help
        sys.exit(unwritten(error))
    finally:
        gc.freeze()  # a process that ends would look for cycles twice

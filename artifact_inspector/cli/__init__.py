"""The command `inspect-kernel`: options to inspection, inspection to report, report to exit code.

One module per command: every module here without a leading underscore hangs its command on the
application when it is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import INTERRUPTED

__all__ = ["app", "main"]

for _module in iter_modules(__path__):
    if not _module.name.startswith("_"):
        import_module(f"{__name__}.{_module.name}")


def main() -> None:
    """Run the command on the process's arguments."""
    try:
        app(prog_name="inspect-kernel")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)

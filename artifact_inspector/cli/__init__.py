"""The command `inspect-kernel`: options to inspection, inspection to report, report to exit code.

One module per command; each hangs itself on the application when it is imported.
"""

from __future__ import annotations

import sys

from artifact_inspector.cli import compile, findings, inspect, schema
from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import INTERRUPTED

__all__ = ["app", "compile", "findings", "inspect", "main", "schema"]


def main() -> None:
    """Run the command on the process's arguments."""
    try:
        app(prog_name="inspect-kernel")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)

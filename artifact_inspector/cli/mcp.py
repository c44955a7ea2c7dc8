"""`inspect-kernel mcp` and `skill`: for agents that look at kernels."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.errors import UsageError

Root = Annotated[
    list[Path] | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="A directory that may be read and written; by default the working directory and Triton's cache.",
    ),
]


@app.command()
def mcp(
    root: Root = None,
    allow_execute: Annotated[
        bool,
        typer.Option(
            "--allow-execute",
            metavar="",
            help="Allow try, compile, capture and passes: they run the user's code.",
        ),
    ] = False,
) -> None:
    """Serve agents by the Model Context Protocol, on standard input and output."""
    with exit_codes(json=False):
        require_extra("mcp", "mcp")
        from artifact_inspector.serving.mcp import serve
        from artifact_inspector.serving.roots import Roots, default_roots
        from artifact_inspector.serving.tool import Service

        roots = Roots(root or default_roots())
        if not roots.directories[0].is_dir():
            raise UsageError(f"There is no directory {roots.directories[0]}.", "Name one with --root.")
        os.chdir(roots.directories[0])  # where relative paths are from, those of a captured program too
        serve(Service(roots, executes=allow_execute))


@app.command()
def skill() -> None:
    """Print a skill file for agents: when to use which command, with worked loops."""
    with exit_codes(json=False):
        from artifact_inspector.report.console import write
        from artifact_inspector.serving.skill import skill_text

        write(skill_text(), sys.stdout)


def require_extra(module: str, extra: str) -> None:
    """Raise a UsageError that says how to come by a package that is not installed."""
    if find_spec(module) is None:
        raise UsageError(
            f"{module} is not installed.",
            f"Install the extra: pip install '.[{extra}]' in a clone of the repository.",
        )

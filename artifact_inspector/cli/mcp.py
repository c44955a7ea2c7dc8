"""`inspect-kernel mcp`: serve coding agents."""

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
        "--root", metavar="DIR", help="Allow access to DIR. Default: the working directory and Triton's cache."
    ),
]


@app.command()
def mcp(
    root: Root = None,
    allow_execute: Annotated[
        bool,
        typer.Option(
            "--allow-execute", metavar="", help="Allow try, compile, capture and passes, which run the user's code."
        ),
    ] = False,
    skill: Annotated[
        bool, typer.Option("--skill", metavar="", help="Print a skill file for agents, and exit.")
    ] = False,
) -> None:
    """Serve coding agents through the Model Context Protocol on standard input and output."""
    with exit_codes(json=False):
        if skill:
            from artifact_inspector.report.console import write
            from artifact_inspector.serving.skill import skill_text

            write(skill_text(), sys.stdout)
            return
        require_extra("mcp", "mcp")
        from artifact_inspector.serving.mcp import serve
        from artifact_inspector.serving.roots import AllowedDirectories, default_roots
        from artifact_inspector.serving.tool import ToolContext

        roots = AllowedDirectories(root or default_roots())
        if not roots.directories[0].is_dir():
            raise UsageError(f"--root {roots.directories[0]} is not a directory.", "Give an existing one.")
        os.chdir(roots.directories[0])  # relative paths, those of a captured program too, start here
        serve(ToolContext(roots, allows_execution=allow_execute))


def require_extra(module: str, extra: str) -> None:
    """Raise a UsageError that says how to install a missing package."""
    if find_spec(module) is None:
        raise UsageError(
            f"The package {module} is not installed.",
            f"Install the extra: pip install '.[{extra}]' in a clone of the repository.",
        )

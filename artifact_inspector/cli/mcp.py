"""`inspect-kernel mcp`: serve coding agents."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.errors import UsageError


@command()
def mcp(
    root: list[Path] | None = options.option(
        "--root DIR", "Allow access to DIR. Default: the working directory and Triton's cache.", None
    ),
    allow_execute: bool = options.option(
        "--allow-execute", "Allow try, compile, capture and passes, which run the user's code.", False
    ),
    skill: bool = options.option("--skill", "Print a skill file for agents, and exit.", False),
) -> None:
    """Serve coding agents through the Model Context Protocol on standard input and output."""
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

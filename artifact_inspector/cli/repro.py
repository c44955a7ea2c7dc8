"""`inspect-kernel repro CACHE KERNEL -o FILE.py`: a standalone file that compiles and launches one kernel."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import Selection


@command()
def repro(
    selection: Selection,
    output: Path = options.option("--output -o FILE", "Write the program to FILE.", Path("repro.py")),
    kernel: str | None = options.option(
        "--kernel FILE.py:KERNEL", "Take the source from here; a record is not trusted.", None
    ),
) -> None:
    """Write one Python file that compiles a kernel to the same key and launches it, for a bug report.

    Exits 1 if the source is not the compiled one.
    """
    from artifact_inspector.api.reproducer import make_reproducer
    from artifact_inspector.cli._loading import open_selected, require_one
    from artifact_inspector.cli._output import write_line
    from artifact_inspector.files.writer import write_text

    opened = open_selected(selection)
    artifact = require_one(opened.artifacts, "`repro` writes")
    text, notes, other_line = make_reproducer(opened.cache, artifact, kernel)
    write_text(output, text)
    write_line(
        f"{output}: {artifact.display_name} for {artifact.target}. Check it: python {output} --compile", sys.stdout
    )
    for note in notes:
        write_line(f"{output}: {note}.", sys.stderr)
    if other_line is not None:
        write_line(
            f"{output}: its source is not the compiled one: line {other_line} differs. The key will differ, too.",
            sys.stderr,
        )
        raise typer.Exit(DIFFERENT)

"""`inspect-kernel index`: what is kept of what was found before."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import Json
from artifact_inspector.cli._telling import say


@app.command()
def index(
    clear: Annotated[bool, typer.Option("--clear", metavar="", help="Forget everything.")] = False,
    stats: Annotated[bool, typer.Option("--stats", metavar="", help="Say what it holds.")] = False,
    json: Json = False,
) -> None:
    """Say what the index of facts holds, or forget it."""
    with exit_codes(json=json):
        from artifact_inspector.files.index import Index, default_place

        with Index(default_place(), lambda sentence: say(sentence, sys.stderr)) as kept:
            if clear:
                kept.clear()
            found = kept.stats() if stats or json or not clear else None
        if found is not None and json:
            from artifact_inspector.report.json import as_text
            from artifact_inspector.report.json.index import IndexDocument

            document = IndexDocument(place=found.place, kernels=found.entries, bytes=found.bytes)
            typer.echo(as_text(document, sys.stdout.encoding), nl=False)
        elif found is not None:
            say(f"{found.entries} kernels, {found.bytes / 1e6:.1f} MB, in {found.place}", sys.stdout)

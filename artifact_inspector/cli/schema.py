"""`inspect-kernel schema`: the JSON Schema of what `--json` prints."""

from __future__ import annotations

from typing import Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._telling import print_json, print_report
from artifact_inspector.errors import UsageError


def _complete_document(incomplete: str) -> list[str]:
    from artifact_inspector.report.json.schema import DOCUMENTS

    return [name for name in DOCUMENTS if name.startswith(incomplete)]


@app.command()
def schema(
    document: Annotated[
        str | None,
        typer.Argument(
            metavar="[DOCUMENT]",
            help="The value of the field `document`; without it, the documents are listed.",
            autocompletion=_complete_document,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a document, or list the documents."""
    with exit_codes(json=False):
        from artifact_inspector.report.json.schema import DOCUMENTS, DocumentList, schema_of

        if document is None:
            print_report(DocumentList())
        elif document not in DOCUMENTS:
            raise UsageError(f"{document!r} is no document.", f"The documents are {', '.join(DOCUMENTS)}.")
        else:
            print_json(schema_of(document))

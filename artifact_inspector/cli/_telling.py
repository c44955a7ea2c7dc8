"""What a command found, on standard output: a document where JSON was asked for, else a report."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType


def print_json(document: object) -> None:
    """Print a document, in the encoding that standard output has."""
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json import as_text

    write(as_text(document, sys.stdout.encoding), sys.stdout)


def print_report(report: RenderableType) -> None:
    """Print a report as wide as the terminal is."""
    from artifact_inspector.report.console import show

    show(report, sys.stdout)


def notice(sentence: str) -> None:
    """Say on standard error what takes long, before it begins."""
    say(f"{sentence} …", sys.stderr)


def say(sentence: str, stream: TextIO) -> None:
    """Write a sentence in which the name of a file moves no cursor."""
    from artifact_inspector.model.printable import escaped
    from artifact_inspector.report.console import write

    write(escaped(sentence.expandtabs()) + "\n", stream)

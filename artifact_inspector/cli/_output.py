"""What a command prints: documents, reports, notices, and `--output FILE`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType


def print_json(document: object) -> None:
    """Print a document in the encoding of standard output."""
    from artifact_inspector.report.console import write
    from artifact_inspector.report.json import as_text

    write(as_text(document, sys.stdout.encoding), sys.stdout)


def print_report(report: RenderableType) -> None:
    """Print a report as wide as the terminal."""
    from artifact_inspector.report.console import show

    show(report, sys.stdout)


def print_next(*words: object) -> None:
    """Print the command that continues after a report."""
    from rich.console import Group

    from artifact_inspector.report.layout import next_command

    print_report(Group("", next_command(*words)))


class _FileText(io.StringIO):
    """Text that will be written to a file, in UTF-8 whatever the terminal's encoding is."""

    encoding = "utf-8"


@contextmanager
def output_to(file: Path | None) -> Iterator[None]:
    """Write what the block prints on standard output to a file; None leaves it on standard output."""
    if file is None:
        yield
        return
    from artifact_inspector.files.writer import write_text

    stdout, sys.stdout = sys.stdout, _FileText()
    try:
        yield
    finally:
        text, sys.stdout = sys.stdout.getvalue(), stdout
        if text:
            write_text(file, text)


def notice(sentence: str) -> None:
    """Write a sentence beside the report, on standard error."""
    write_line(sentence, sys.stderr)


def write_line(sentence: str, stream: TextIO) -> None:
    """Write a line; control characters in it (from names of files) are escaped."""
    from artifact_inspector.model.escaping import escape_unprintable
    from artifact_inspector.report.console import write

    write(escape_unprintable(sentence.expandtabs()) + "\n", stream)

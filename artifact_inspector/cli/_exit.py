"""Errors as sentences on standard error and as exit codes, in this one place.

0 fine or same, 1 found, different or not compiled, 2 the request makes no sense, 3 nothing could be read,
130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from artifact_inspector.errors import CacheError, CompileError, InspectorError, UsageError

FOUND, USAGE, UNREADABLE, INTERRUPTED = 1, 2, 3, 130


@contextmanager
def exit_codes(*, json: bool) -> Iterator[None]:
    """Errors as sentences on standard error and exit codes, in this one place."""
    try:
        yield
    except InspectorError as error:
        if json and isinstance(error, CacheError):
            from artifact_inspector.report.json import as_text
            from artifact_inspector.report.json.error import error_document

            typer.echo(as_text(error_document(error), "ascii"), nl=False)
        _fail(error)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        # the reader of a pipe went away; Windows says EINVAL
        if error.errno not in (errno.EPIPE, errno.EINVAL):
            _fail(CacheError(f"The report could not be written: {error.strerror or error}."))
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def _fail(error: InspectorError) -> NoReturn:
    from artifact_inspector.model.printable import escaped
    from artifact_inspector.report.console import write

    code = {UsageError: USAGE, CompileError: FOUND}.get(type(error), UNREADABLE)
    try:
        said = f"inspect-kernel: {error.message}\n" + (f"{error.remedy}\n" if error.remedy else "")
        write(escaped(said.expandtabs()), sys.stderr)
    finally:
        raise typer.Exit(code) from None

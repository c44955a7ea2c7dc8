"""Errors as sentences on standard error and as exit codes, in this one place.

0 fine or same (findings are no failure), 1 different, wrong or not compiled, 2 the request makes no sense,
3 nothing could be read, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from artifact_inspector.cli._telling import say
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

            sys.stdout.write(as_text(error_document(error), "ascii"))
        _fail(error)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:  # what took it may still be there: no import
        sys.stderr.write("inspect-kernel: There is not enough memory for what was read.\n")
        raise SystemExit(UNREADABLE) from None
    except OSError as error:
        raise SystemExit(unwritten(error)) from None


def unwritten(error: OSError) -> int:
    """The exit code where standard output takes no more, which is said; none where its reader went away."""
    # what is left in the stream would fail once more at the end of the process
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno in (errno.EPIPE, errno.EINVAL):  # Windows says EINVAL
        return 0
    with contextlib.suppress(OSError):
        _say(CacheError(f"The report could not be written: {error.strerror or error}."))
    return UNREADABLE


def _fail(error: InspectorError) -> NoReturn:
    code = {UsageError: USAGE, CompileError: FOUND}.get(type(error), UNREADABLE)
    try:
        _say(error)
    finally:
        raise SystemExit(code) from None


def _say(error: InspectorError) -> None:
    say(f"inspect-kernel: {error.message}" + (f"\n{error.remedy}" if error.remedy else ""), sys.stderr)

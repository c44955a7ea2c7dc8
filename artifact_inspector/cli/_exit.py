"""Errors as sentences on standard error and as exit codes; the only place that maps them.

0 fine or same (findings are no failure), 1 different, wrong or not compiled, 2 usage,
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

from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import CacheError, CompileError, InspectorError, UsageError

DIFFERENT, USAGE, UNREADABLE, INTERRUPTED = 1, 2, 3, 130


@contextmanager
def exit_codes(*, json: bool) -> Iterator[None]:
    """Turn errors of the block into a sentence on standard error and an exit code.

    Args:
        json: print an error document on standard output as well where nothing could be read.
    """
    try:
        yield
    except InspectorError as error:
        if json and isinstance(error, CacheError | UsageError):
            from artifact_inspector.report.json import as_text
            from artifact_inspector.report.json._document import error_document

            sys.stdout.write(as_text(error_document(error), "ascii"))
        report_error(error)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:  # memory may still be full, so import nothing here
        sys.stderr.write("inspect-kernel: Out of memory. Inspect fewer kernels at a time: give a NAME.\n")
        raise SystemExit(UNREADABLE) from None
    except OSError as error:
        raise SystemExit(report_write_error(error)) from None


def report_write_error(error: OSError) -> int:
    """Report a failed write to standard output and return the exit code; 0 where its reader closed it."""
    # buffered output would raise again when the process exits
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno in (errno.EPIPE, errno.EINVAL):  # Windows raises EINVAL
        return 0
    with contextlib.suppress(OSError):
        _print_error(CacheError(f"The report could not be written: {error.strerror or error}."))
    return UNREADABLE


def report_error(error: InspectorError) -> NoReturn:
    """Print an error on standard error and exit with its code."""
    code = {UsageError: USAGE, CompileError: DIFFERENT}.get(type(error), UNREADABLE)
    try:
        _print_error(error)
    finally:
        raise SystemExit(code) from None


def _print_error(error: InspectorError) -> None:
    write_line(f"inspect-kernel: {error.message}" + (f"\n{error.remedy}" if error.remedy else ""), sys.stderr)

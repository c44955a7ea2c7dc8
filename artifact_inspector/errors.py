"""The errors that leave the library: each says what happened, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artifact_inspector.model.text import SourcePosition


class InspectorError(Exception):
    """Base of every error that leaves the library; its text is one sentence for the user.

    Args:
        message: what happened.
        remedy: what the user can do about it, as a separate sentence, or None.
    """

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message} {self.remedy}"


class UsageError(InspectorError):
    """An invalid request (unknown target, ambiguous name …)."""


class CacheError(InspectorError):
    """A cache directory that cannot be read at all."""


class CompileError(InspectorError):
    """A kernel that the compiler rejected, with the compiler's own message."""


class DeviceError(InspectorError):
    """No GPU is available to launch a kernel, or no software to launch it with."""


class ParseError(InspectorError):
    """Invalid structure in a file; prints location, problem and the line with a caret."""

    def __init__(self, message: str, span: SourcePosition, remedy: str | None = None) -> None:
        super().__init__(message, remedy)
        self.span = span

    def __str__(self) -> str:
        text = f"{self.span.label}: {self.message}\n{self.span.excerpt}"
        return text if self.remedy is None else f"{text}\n{self.remedy}"

"""Errors that are the caller's show the caller's lines, not ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from artifact_inspector.errors import InspectorError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def errors_are_the_callers(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, whose errors say what to do and are raised as if by the line that called it."""

    @wraps(function)
    def plain(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except InspectorError as error:
            raise error.with_traceback(None) from None

    return plain

"""Tracebacks that end at the caller's line rather than inside this package."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from artifact_inspector.errors import InspectorError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def hide_internal_frames(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that its `InspectorError` is raised as if by the calling line."""

    @wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except InspectorError as error:
            raise error.with_traceback(None) from None

    return wrapper

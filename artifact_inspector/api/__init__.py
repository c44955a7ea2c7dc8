"""Kernels as a program holds them: in a test, a notebook, a script.

`inspect` makes an `Inspection` of what a Triton launch returns, or of a path; `watch` collects those of
everything that Triton compiles meanwhile. They hold no facts of their own: every answer is read from
`KernelFacts`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # what type checkers take for True
if TYPE_CHECKING:
    from artifact_inspector.api.compiling import compile_and_inspect
    from artifact_inspector.api.plain import from_json, to_json
    from artifact_inspector.api.reading import inspect
    from artifact_inspector.api.region import RegionView, Verdict
    from artifact_inspector.api.view import Inspection
    from artifact_inspector.api.watching import Watched, watch

_PLACES = {
    "compile_and_inspect": "compiling",
    "from_json": "plain",
    "to_json": "plain",
    "inspect": "reading",
    "RegionView": "region",
    "Verdict": "region",
    "Inspection": "view",
    "Watched": "watching",
    "watch": "watching",
}

__all__ = [
    "Inspection",
    "RegionView",
    "Verdict",
    "Watched",
    "compile_and_inspect",
    "from_json",
    "inspect",
    "to_json",
    "watch",
]


def __getattr__(name: str) -> object:
    """A name from its module, when it is first asked for: a command needs one of them at most."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)

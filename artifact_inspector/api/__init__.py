"""The Python interface for tests, notebooks and scripts.

`inspect` makes an `Inspection` of what a Triton launch returns, or of a path. `watch` collects an
`Inspection` of every kernel that Triton compiles while a block runs. All facts are read from `KernelFacts`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers assume True
if TYPE_CHECKING:
    from artifact_inspector.api.compiling import compile_and_inspect
    from artifact_inspector.api.inspection import Inspection, RegionView, Verdict
    from artifact_inspector.api.inspector import inspect
    from artifact_inspector.api.object_json import from_json, to_json
    from artifact_inspector.api.watching import Watched, watch

_MODULE_BY_NAME = {
    "compile_and_inspect": "compiling", "from_json": "object_json", "to_json": "object_json", "inspect": "inspector",
    "RegionView": "inspection", "Verdict": "inspection", "Inspection": "inspection", "Watched": "watching",
    "watch": "watching",
}  # fmt: skip

__all__ = [
    "Inspection", "RegionView", "Verdict", "Watched", "compile_and_inspect", "from_json", "inspect", "to_json", "watch",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name on first use: a command needs at most one of them."""
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)

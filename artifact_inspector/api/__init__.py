"""Kernels as a program holds them: in a test, a notebook, a script.

`inspect` makes an `Inspection` of what a Triton launch returns, or of a path; `watch` collects those of
everything that Triton compiles meanwhile. They hold no facts of their own: every answer is read from
`KernelFacts`.
"""

from __future__ import annotations

from artifact_inspector.api.compiling import compile_and_inspect
from artifact_inspector.api.plain import from_json, to_json
from artifact_inspector.api.reading import inspect
from artifact_inspector.api.region import RegionView, Verdict
from artifact_inspector.api.view import Inspection
from artifact_inspector.api.watching import Watched, watch

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

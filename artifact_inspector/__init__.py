"""A compiler-artifact inspector for the Triton cache.

Public names are imported on first use, so that importing the package costs almost nothing.

Example:
    >>> from artifact_inspector import inspect
    >>> inspect(path_or_compiled_kernel).loop().verdict  # doctest: +SKIP
    'pipelined'
"""

from __future__ import annotations

import sys

# `python -m artifact_inspector` searches the working directory for modules first, which may be an untrusted
# cache: remove it from the path. `argv` starts with `-m` while the package is being located.
if sys.argv[:1] == ["-m"] and ["-m", __name__] in (sys.orig_argv[i : i + 2] for i in range(4)):
    try:
        sys.path[:] = [path for path in sys.path if path not in ("", __import__("os").getcwd())]
    except FileNotFoundError:  # the working directory was deleted, so nothing can be imported from it
        sys.path[:] = [path for path in sys.path if path]

from importlib import import_module

from artifact_inspector.version import __version__

TYPE_CHECKING = False  # type checkers assume True; importing `typing` would take most of the import time
if TYPE_CHECKING:
    from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundFacts, RoundPair
    from artifact_inspector.api import (
        Inspection,
        RegionView,
        Watched,
        compile_and_inspect,
        from_json,
        inspect,
        to_json,
        watch,
    )
    from artifact_inspector.api.notebook import capture, inspect_cache
    from artifact_inspector.api.pruning import autotune, prune_configs, prune_helion, prune_inductor
    from artifact_inspector.compiling import (
        CapturedKernel,
        CompileResult,
        KernelRequest,
        ProgramRun,
        capture_program,
        compile_kernel,
        compile_kernels,
    )
    from artifact_inspector.compiling.reference import Workload
    from artifact_inspector.errors import CacheError, CompileError, InspectorError, ParseError, UsageError
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts, WaitFacts
    from artifact_inspector.facts.modules import read_module
    from artifact_inspector.files.cache import Artifact, Cache, OtherFile, Problem, open_cache, read_stage
    from artifact_inspector.hardware.targets import Target, parse_target
    from artifact_inspector.model import EventKind, Instruction, Module, Stage

_NAMES_BY_MODULE = {
    "analysis.order.region_facts": ("RoundPair", "RegionFacts", "RoundFacts"),
    "api": ("Inspection", "RegionView", "Watched", "compile_and_inspect", "from_json", "inspect", "to_json", "watch"),
    "files.cache": ("Artifact", "Cache", "OtherFile", "Problem", "open_cache", "read_stage"),
    "compiling": (
        "CapturedKernel", "CompileResult", "KernelRequest", "ProgramRun", "capture_program", "compile_kernel",
        "compile_kernels",
    ),
    "api.pruning": ("autotune", "prune_configs", "prune_helion", "prune_inductor"),
    "api.notebook": ("capture", "inspect_cache"),
    "compiling.reference": ("Workload",),
    "errors": ("CacheError", "CompileError", "InspectorError", "ParseError", "UsageError"),
    "facts.kernel": ("KernelFacts", "RegionWork", "StageFacts", "WaitFacts"),
    "facts.inspection": ("inspect_artifact",),
    "facts.modules": ("read_module",),
    "model": ("EventKind", "Instruction", "Module", "Stage"),
    "hardware.targets": ("Target", "parse_target"),
}  # fmt: skip
_MODULE_BY_NAME = {name: module_name for module_name, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = [
    "Artifact", "Cache", "CacheError", "CapturedKernel", "CompileError", "CompileResult", "EventKind", "Inspection",
    "InspectorError", "Instruction", "KernelFacts", "KernelRequest", "Module", "OtherFile", "ParseError", "Problem",
    "ProgramRun", "RegionFacts", "RegionView", "RegionWork", "RoundFacts", "RoundPair", "Stage", "StageFacts", "Target",
    "UsageError", "WaitFacts", "Watched", "Workload", "__version__", "autotune", "capture", "capture_program",
    "compile_and_inspect", "compile_kernel", "compile_kernels", "from_json", "inspect", "inspect_artifact",
    "inspect_cache", "open_cache", "parse_target", "prune_configs", "prune_helion", "prune_inductor", "read_module",
    "read_stage", "to_json", "watch",
]  # fmt: skip


def __getattr__(name: str) -> object:
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__

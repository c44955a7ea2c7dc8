"""Tools that run user code or a compiler; disabled by default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifact_inspector.compiling import REFERENCE_KERNELS, KernelRequest, capture_program, compile_kernels
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.json import encode
from artifact_inspector.serving.items import row_item
from artifact_inspector.serving.read_tools import inspect_artifacts, require_one
from artifact_inspector.serving.tool import (
    CACHE_PARAMETER,
    NAME_PARAMETER,
    OFFSET_PARAMETER,
    TARGET_PARAMETER,
    AnswerBound,
    Item,
    McpTool,
    ToolAnswer,
    ToolContext,
    ToolParameter,
    integer_parameter,
    make_page,
    string_parameter,
    strings_parameter,
)

_KERNEL_FILE = re.compile(r".+\.py(:[\w.]+)?")


def _parse_request(service: ToolContext, arguments: Mapping[str, Any]) -> KernelRequest:
    kernel_name = arguments["kernel"]
    if kernel_name not in REFERENCE_KERNELS:
        if not _KERNEL_FILE.fullmatch(kernel_name):
            listed = ", ".join(REFERENCE_KERNELS)
            raise UsageError(
                f"{kernel_name} is not FILE.py:KERNEL or a reference kernel.", f"Reference kernels: {listed}."
            )
        kernel_name = service.roots.resolve_name(kernel_name)
    return KernelRequest(
        kernel_name, arguments.get("signature"), arguments.get("constants", {}), arguments.get("options", {})
    )


def _output_directory(service: ToolContext, arguments: Mapping[str, Any]) -> Path:
    return service.roots.resolve(arguments.get("out", "triton-cache"))


_OUT_PARAMETER = string_parameter("out", "Write compiled kernels to this cache directory. Default: triton-cache.")


def _answer_compile(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    out = _output_directory(service, arguments)
    rows = compile_kernels([_parse_request(service, arguments)], arguments["targets"], out)
    if rows and all(row.is_usage_error for row in rows):
        raise UsageError(rows[0].message or "", rows[0].remedy)
    items: list[Item] = []
    for row in rows:
        if row.directory is None:
            items.append({"target": str(row.target), "message": row.message, "remedy": row.remedy})
            continue
        (kernel,) = inspect_artifacts(open_cache(row.directory).entries[:1])
        items.append({"target": str(row.target), "cache": str(out), "config": row.config, **row_item(kernel)})
    return make_page("compile", arguments, items, bound, "kernels")


def _answer_try(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.trial import try_change
    from artifact_inspector.report.json.comparison import reach_document

    against = arguments.get("against")
    if against is not None:
        against = service.roots.resolve_name(against)
    answers = try_change(
        _parse_request(service, arguments),
        arguments["targets"],
        against,
        changed={name: str(value) for name, value in arguments.get("with", {}).items()},
        out=_output_directory(service, arguments),
    )
    documents = encode(reach_document(answers))["results"]
    items: list[Item] = []
    for document in documents:
        facts = document.pop("facts")
        items += [{"part": "effect", **document}, *({"part": "fact", **fact} for fact in facts)]
    return make_page("try", arguments, items, bound, "facts")


def _answer_capture(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    limits = {name: arguments[name] for name in ("launches", "seconds") if name in arguments}
    runs = capture_program(arguments["command"], arguments["targets"], _output_directory(service, arguments), **limits)
    items: list[Item] = []
    for run in runs:
        problem = None if run.problem is None else " ".join(filter(None, run.problem))
        items.append({"target": str(run.target), "status": run.status, "kernels": len(run.kernels), "problem": problem})
        items += [
            {"target": str(run.target), "kernel": kernel.name, "hash": kernel.hash, "launches": len(kernel.launches),
             "signature": encode(kernel.signature), "message": kernel.message}
            for kernel in run.kernels
        ]  # fmt: skip
    return make_page("capture", arguments, items, bound, "kernels")


def _answer_passes(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.passes.dump_facts import Topic
    from artifact_inspector.passes.subject import subject_of_entry, trace_passes

    kinds = {kind.value: kind for kind in Topic}
    unknown = [fact_name for fact_name in arguments.get("what", ()) if fact_name not in kinds]
    if unknown:
        raise UsageError(f"Unknown fact {unknown[0]!r} for `what`.", f"Expected one of {', '.join(kinds)}.")
    selected_kinds = tuple(kinds[fact_name] for fact_name in arguments.get("what", ())) or tuple(Topic)
    trace = trace_passes(subject_of_entry(require_one(service, arguments)), selected_kinds)
    steps = [encode(step) for step in trace.steps]
    # drop the durations, which differ from run to run
    steps_without_time = [{name: value for name, value in step.items() if name != "seconds"} for step in steps]
    items = [{"part": "pass", **step} for step in steps_without_time if step.get("changes")]
    return make_page("passes", arguments, items, bound, "passes")


_KERNEL_PARAMETER = string_parameter("kernel", "FILE.py:KERNEL, or the name of a reference kernel.", required=True)
_TARGETS_PARAMETER = strings_parameter(
    "targets", "GPUs to compile for; none needs to be present: sm_90, gfx942 …", required=True
)
_COMPILE_PARAMETERS = (
    string_parameter("signature", "Argument types by position or name; `:16` = divisible by 16: '*fp16:16, n=i32:16'."),
    ToolParameter("constants", {"type": "object", "description": "Values of the tl.constexpr arguments."}),
    ToolParameter("options", {"type": "object", "description": "num_warps, num_stages, maxnreg, waves_per_eu …"}),
)


EXECUTING_TOOLS = (
    McpTool(
        "try",
        "Check whether a change of a kernel changes the generated code, and list what changed. Compiles the "
        "current file and another state (a revision, a file, a cache), or the file with changed options. "
        "Measure only changes that reach the code. Imports the user's file.",
        (
            _KERNEL_PARAMETER, _TARGETS_PARAMETER,
            string_parameter("against", "HEAD~1, OTHER.py, CACHE or CACHE:HASH. Default: HEAD; with `with`: the file."),
            ToolParameter(
                "with",
                {"type": "object", "description": "Changes of the new state only: {\"num_stages\": 4}."},
            ),
            *_COMPILE_PARAMETERS, _OUT_PARAMETER, OFFSET_PARAMETER,
        ),
        _answer_try, True,
    ),
    McpTool(
        "compile",
        "Compile a kernel for GPUs that need not be present. Imports the file.",
        (_KERNEL_PARAMETER, _TARGETS_PARAMETER, *_COMPILE_PARAMETERS, _OUT_PARAMETER, OFFSET_PARAMETER),
        _answer_compile, True,
    ),
    McpTool(
        "capture",
        "Run a program without a GPU and compile every kernel that it would launch. Runs the user's program.",
        (
            strings_parameter("command", "The program and its arguments: ['python', 'train.py'].", required=True),
            _TARGETS_PARAMETER,
            integer_parameter("launches", "Stop after this many launches.", 1),
            integer_parameter("seconds", "Stop after this many seconds.", 1), _OUT_PARAMETER, OFFSET_PARAMETER,
        ),
        _answer_capture, True,
    ),
    McpTool(
        "passes",
        "List what each compiler pass changed in a cached kernel. Compiles it again from its TTIR.",
        (CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER,
         strings_parameter("what", "order, pipeline, loops, widths, layouts, shared …"), OFFSET_PARAMETER),
        _answer_passes, True,
    ),
)  # fmt: skip
"""Tools that run user code or a compiler; disabled by default."""

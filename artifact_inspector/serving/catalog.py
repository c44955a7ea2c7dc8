"""The tools of the server: names, descriptions and arguments. What answers a call is imported with the first one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artifact_inspector.serving.tool import (
    McpTool,
    ToolParameter,
    choices_parameter,
    integer_parameter,
    object_parameter,
    string_parameter,
    strings_parameter,
)

PARTS = ("summary", "findings", "order", "resources", "loads", "shared_allocations", "remarks", "stages", "regions")
"""Parts of a kernel that can be requested."""

_CACHE = string_parameter("cache", "Cache directory or file. Default: Triton's.")
_KERNEL = string_parameter("kernel", "Part of name or hash.")
_TARGET = string_parameter("target", "Filter: sm_90,w4,s3,3.6,GROUP_SIZE_M=8.")
_SELECTION = (_CACHE, _KERNEL, _TARGET)
_OFFSET = integer_parameter("offset", "Skip.")
_SEVERITY = choices_parameter("severity", ("warning", "note"), "Of a finding.")
_GRID = string_parameter("grid", "1024 or 'cdiv(M,BLOCK_M)'. Default: recorded.")
_ARGUMENTS = object_parameter("arguments", "{x: 'fp16[2048,2048]', n: 64}.")
_GPU = string_parameter("gpu", "H200.")
_SOURCE = string_parameter("kernel", "FILE.py:KERNEL.", required=True)
_TARGETS = string_parameter("target", "GPUs: sm_90,gfx942.", required=True)
_OUTPUT = string_parameter("cache", "Directory to write.")
_COMPILE = (
    _SOURCE,
    _TARGETS,
    string_parameter("signature", "Types: '*fp16:16, n=i32:16'."),
    object_parameter("constants", "tl.constexpr values."),
    object_parameter("options", "num_warps, num_stages, maxnreg."),
    _OUTPUT,
)
_CHANGE = (
    string_parameter("against", "Old state: HEAD (default), OTHER.py, CACHE:HASH."),
    object_parameter("with", "Only in the new state: {num_stages: 4}."),
)

_READING = (
    McpTool("list", "List kernels, worst first: variant, registers, spills, blocks, findings.", (
        *_SELECTION, _OFFSET, strings_parameter("findings", "Only with one: AI003."),
        strings_parameter("verdicts", "Only with one: serial, pipelined."), _SEVERITY,
        string_parameter("sort", "cost, name, time, verdict, spills, occupancy, size; -name reverses."),
    )),
    McpTool("inspect", "Show one kernel: findings, resources, order of loads and compute.", (
        *_SELECTION, _OFFSET,
        ToolParameter("parts", {"type": "array", "items": {"enum": list(PARTS)}}),
        string_parameter("region", "Only this loop: loop@81."),
    )),
    McpTool("lines", "Print lines of one stage of a kernel.", (
        *_SELECTION, string_parameter("stage", "ttir, ttgir, llir, ptx, amdgcn.", required=True),
        integer_parameter("first", "First line.", 1), integer_parameter("last", "Last line.", 1),
    )),
    McpTool("findings", "List likely problems, worst first, with lines as evidence.", (
        *_SELECTION, integer_parameter("offset", "Skip kernels."),
        strings_parameter("codes", "Only these: AI003."), _SEVERITY,
    )),
    McpTool("diff", "Compare two kernels or caches. An other_* argument defaults to the one without other_.", (
        replace(_CACHE, is_required=True), _KERNEL, _TARGET,
        *(ToolParameter(f"other_{name}", {"type": "string"}) for name in ("cache", "kernel", "target")), _OFFSET,
        strings_parameter("across", "Pair kernels that differ in: target, version, config, source."),
    )),
    McpTool("predict", "Simulate a launch: time, bound, problems, counters, worst lines.",
            (*_SELECTION, _GRID, _ARGUMENTS, _GPU, _OFFSET)),
    McpTool("rank", "Order compiled variants for one launch, fastest first, by simulation.",
            (*_SELECTION, _GRID, _ARGUMENTS, _GPU, _OFFSET)),
    McpTool("check-memory", "Find out-of-bounds accesses, races and deadlocks of launches by simulation.",
            (*_SELECTION, _GRID, _ARGUMENTS, _OFFSET)),
    McpTool("advise", "Name what takes the time of one kernel, with source lines and remedies.",
            (*_SELECTION, _GRID, _ARGUMENTS, _GPU, _OFFSET)),
    McpTool("explain", "Explain a finding, verdict, fact or term.", (
        string_parameter("term", "AI003, pipelined, registers.", required=True), _OFFSET,
    )),
)  # fmt: skip
_EXECUTING = (
    McpTool("verify", "After an edit: compile, compare with the old state, check memory, predict.", (
        *_COMPILE, *_CHANGE, _GRID, _ARGUMENTS, _OFFSET,
    ), runs_code=True),
    McpTool("try", "Check whether an edit or option changes the generated code, and what.", (
        *_COMPILE, *_CHANGE, _OFFSET,
    ), runs_code=True),
    McpTool("compile", "Compile a kernel.", (*_COMPILE, _OFFSET), runs_code=True),
    McpTool("capture", "Run a program without a GPU; compile and record what it launches.", (
        strings_parameter("command", "['python', 'train.py'].", required=True), _TARGETS,
        integer_parameter("launches", "Maximum.", 1), integer_parameter("seconds", "Maximum.", 1), _OUTPUT, _OFFSET,
    ), runs_code=True),
    McpTool("passes", "List what each compiler pass changed in a cached kernel.", (
        *_SELECTION, strings_parameter("what", "order, pipeline, loops, widths, layouts, shared."), _OFFSET,
    ), runs_code=True),
)  # fmt: skip
TOOLS: Mapping[str, McpTool] = {tool.name: tool for tool in (*_READING, *_EXECUTING)}
"""Name of a tool → the tool. Those that run user code or a compiler are disabled by default."""

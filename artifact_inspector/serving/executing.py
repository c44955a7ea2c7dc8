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
from artifact_inspector.serving.bounds import Answer, Bound, Item
from artifact_inspector.serving.items import row_item
from artifact_inspector.serving.reading import facts_of, only_one
from artifact_inspector.serving.tool import (
    CACHE,
    NAME,
    OFFSET,
    TARGET,
    Parameter,
    Service,
    Tool,
    number,
    page,
    text,
    texts,
)

_FILE = re.compile(r".+\.py(:[\w.]+)?")


def _request(service: Service, given: Mapping[str, Any]) -> KernelRequest:
    place = given["kernel"]
    if place not in REFERENCE_KERNELS:
        if not _FILE.fullmatch(place):
            listed = ", ".join(REFERENCE_KERNELS)
            raise UsageError(
                f"{place} is not FILE.py:KERNEL or a reference kernel.", f"Reference kernels: {listed}."
            )
        place = service.roots.place(place)
    return KernelRequest(place, given.get("signature"), given.get("constants", {}), given.get("options", {}))


def _out(service: Service, given: Mapping[str, Any]) -> Path:
    return service.roots.inside(given.get("out", "triton-cache"))


_OUT = text("out", "Write compiled kernels to this cache directory. Default: triton-cache.")


def _compile(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    out = _out(service, given)
    rows = compile_kernels([_request(service, given)], given["targets"], out)
    if rows and all(row.usage for row in rows):
        raise UsageError(rows[0].message or "", rows[0].remedy)
    items: list[Item] = []
    for row in rows:
        if row.directory is None:
            items.append({"target": str(row.target), "message": row.message, "remedy": row.remedy})
            continue
        (kernel,) = facts_of(open_cache(row.directory).entries[:1])
        items.append({"target": str(row.target), "cache": str(out), "config": row.config, **row_item(kernel)})
    return page("compile", given, items, bound, "kernels")


def _try(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.api.trial import try_change
    from artifact_inspector.report.json.reach import reach_document

    against = given.get("against")
    if against is not None:
        against = service.roots.place(against)
    changed = {name: str(value) for name, value in given.get("with", {}).items()}
    answers = try_change(
        _request(service, given), given["targets"], against, changed=changed, out=_out(service, given)
    )
    documents = encode(reach_document(answers))["answers"]
    items: list[Item] = []
    for document in documents:
        facts = document.pop("facts")
        items += [{"part": "answer", **document}, *({"part": "fact", **fact} for fact in facts)]
    return page("try", given, items, bound, "facts")


def _capture(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    limits = {name: given[name] for name in ("launches", "seconds") if name in given}
    runs = capture_program(given["command"], given["targets"], _out(service, given), **limits)
    items: list[Item] = []
    for run in runs:
        problem = None if run.problem is None else " ".join(filter(None, run.problem))
        items.append(
            {"target": str(run.target), "status": run.status, "kernels": len(run.kernels), "problem": problem}
        )
        items += [
            {"target": str(run.target), "kernel": one.name, "hash": one.hash, "launches": len(one.launches),
             "signature": encode(one.signature), "message": one.message}
            for one in run.kernels
        ]  # fmt: skip
    return page("capture", given, items, bound, "kernels")


def _passes(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.passes.observation import What
    from artifact_inspector.passes.subject import of_entry, trace_passes

    known = {one.value: one for one in What}
    unknown = [word for word in given.get("what", ()) if word not in known]
    if unknown:
        raise UsageError(f"Unknown fact {unknown[0]!r} for `what`.", f"Expected one of {', '.join(known)}.")
    wanted = tuple(known[word] for word in given.get("what", ())) or tuple(What)
    found = trace_passes(of_entry(only_one(service, given)), wanted)
    steps = [encode(step) for step in found.steps]
    # drop the durations, which differ from run to run
    told = [{name: value for name, value in step.items() if name != "seconds"} for step in steps]
    items = [{"part": "pass", **step} for step in told if step.get("changes")]
    return page("passes", given, items, bound, "passes")


_KERNEL = text("kernel", "FILE.py:KERNEL, or the name of a reference kernel.", required=True)
_TARGETS = texts("targets", "GPUs to compile for; none needs to be present: sm_90, gfx942 …", required=True)
_HOW = (
    text("signature", "Argument types by position or name; `:16` = divisible by 16: '*fp16:16, n=i32:16'."),
    Parameter("constants", {"type": "object", "description": "Values of the tl.constexpr arguments."}),
    Parameter("options", {"type": "object", "description": "num_warps, num_stages, maxnreg, waves_per_eu …"}),
)


EXECUTING = (
    Tool(
        "try",
        "Check whether a change of a kernel changes the generated code, and list what changed. Compiles the "
        "current file and another state (a revision, a file, a cache), or the file with changed options. "
        "Measure only changes that reach the code. Imports the user's file.",
        (
            _KERNEL, _TARGETS,
            text("against", "HEAD~1, OTHER.py, CACHE or CACHE:HASH. Default: HEAD; with `with`: the file."),
            Parameter(
                "with",
                {"type": "object", "description": "Changes of the new state only: {\"num_stages\": 4}."},
            ),
            *_HOW, _OUT, OFFSET,
        ),
        _try, True,
    ),
    Tool(
        "compile",
        "Compile a kernel for GPUs that need not be present. Imports the file.",
        (_KERNEL, _TARGETS, *_HOW, _OUT, OFFSET),
        _compile, True,
    ),
    Tool(
        "capture",
        "Run a program without a GPU and compile every kernel that it would launch. Runs the user's program.",
        (
            texts("command", "The program and its arguments: ['python', 'train.py'].", required=True),
            _TARGETS,
            number("launches", "Stop after this many launches.", 1),
            number("seconds", "Stop after this many seconds.", 1), _OUT, OFFSET,
        ),
        _capture, True,
    ),
    Tool(
        "passes",
        "List what each compiler pass changed in a cached kernel. Compiles it again from its TTIR.",
        (CACHE, NAME, TARGET, texts("what", "order, pipeline, loops, widths, layouts, shared …"), OFFSET),
        _passes, True,
    ),
)  # fmt: skip
"""Tools that run user code or a compiler; disabled by default."""

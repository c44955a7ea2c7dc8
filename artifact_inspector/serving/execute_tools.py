"""Tools that run user code or a compiler; disabled by default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifact_inspector.compiling import REFERENCE_KERNELS, KernelRequest, capture_program, compile_kernels
from artifact_inspector.errors import CompileError, InspectorError, UsageError
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.json import encode
from artifact_inspector.serving.changes_and_launches import memory_items, prediction_items
from artifact_inspector.serving.items import drop_empty, list_item
from artifact_inspector.serving.read_tools import inspect_artifacts, require_one
from artifact_inspector.serving.tool import AnswerBound, AnswerFunction, Item, ToolAnswer, ToolContext, make_page

if TYPE_CHECKING:
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.files.cache import Artifact
    from artifact_inspector.report.change_effect import EffectReport

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


def _target_names(arguments: Mapping[str, Any]) -> list[str]:
    return [name.strip() for name in arguments["target"].split(",") if name.strip()]


def _output_directory(service: ToolContext, arguments: Mapping[str, Any]) -> Path:
    return service.roots.resolve(arguments.get("cache", "triton-cache"))


def _answer_compile(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    out = _output_directory(service, arguments)
    rows = compile_kernels([_parse_request(service, arguments)], _target_names(arguments), out)
    if rows and all(row.is_usage_error for row in rows):
        raise UsageError(rows[0].message or "", rows[0].remedy)
    items: list[Item] = []
    for row in rows:
        if row.directory is None:
            items.append({"target": str(row.target), "message": row.message, "remedy": row.remedy})
            continue
        (kernel,) = inspect_artifacts(open_cache(row.directory).entries[:1])
        items.append({"target": str(row.target), "cache": str(out), "config": row.config, **list_item(kernel)})
    return make_page("compile", arguments, items, bound, "kernels")


def _answer_try(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    items = [item for effect in _try_change(service, arguments) for item in _effect_items(effect)]
    return make_page("try", arguments, items, bound, "facts")


def _try_change(service: ToolContext, arguments: Mapping[str, Any], **options: Any) -> list[EffectReport]:
    """The effect of the current state, or of the given changes, for each target."""
    from artifact_inspector.api.trial import try_change

    against = arguments.get("against")
    return try_change(
        _parse_request(service, arguments),
        _target_names(arguments),
        None if against is None else service.roots.resolve_name(against),
        changed={name: str(value) for name, value in arguments.get("with", {}).items()},
        out=_output_directory(service, arguments),
        **options,
    )


def _effect_items(effect: EffectReport) -> Iterator[Item]:
    from artifact_inspector.report.json.comparison import reach_document

    (document,) = encode(reach_document([effect]))["results"]
    facts = document.pop("facts")
    yield {"part": "effect", **drop_empty(document, "stages", "left", "right"), "reached": effect.reach.reached}
    yield from ({"part": "fact", **fact} for fact in facts)


def _answer_verify(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    launch = _given_launch(arguments)
    summaries: list[Item] = []
    details: list[Item] = []
    try:
        effects = _try_change(service, arguments, launch=launch)
        directories = [effect.right for effect in effects]
        for effect in effects:
            price = "" if effect.price is None else effect.price.sentence
            lead = "" if effect.headline is None else effect.headline.sentence
            summaries.append(drop_empty({
                "part": "compare", "baseline": effect.baseline, "changed": str(effect.reach.reached).lower(),
                "headline": lead, "effect": effect.sentence, "time": price,
            }))  # fmt: skip
            details += [item for item in _effect_items(effect) if item["part"] == "fact"]
    except UsageError as error:
        if "against" in arguments or "with" in arguments:
            raise
        out = _output_directory(service, arguments)
        rows = compile_kernels([_parse_request(service, arguments)], _target_names(arguments), out)
        for row in rows:
            if row.directory is None:
                raise CompileError(row.message or "", row.remedy) from None
        directories = [str(row.directory) for row in rows]
        summaries.append({"part": "compare", "changed": "unknown", "message": error.message})
    for directory in directories:
        (entry,) = open_cache(Path(directory)).entries[:1]
        summary, rest = _check_entry(entry, launch)
        summaries = [*summary, *summaries]
        details += rest
    return make_page("verify", arguments, [*summaries, *details], bound, "items")


def _given_launch(arguments: Mapping[str, Any]) -> LaunchRequest | None:
    """The launch of the arguments `grid` and `arguments`; None without a grid."""
    from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument, parse_grid

    if not arguments.get("grid"):
        return None
    pairs = (parse_argument(f"{name}={value}") for name, value in arguments.get("arguments", {}).items())
    return LaunchRequest(parse_grid(arguments["grid"]), dict(pairs))


def _check_entry(entry: Artifact, launch: LaunchRequest | None) -> tuple[list[Item], list[Item]]:
    """The kernel, its memory errors and its predicted time; and the lines of the prediction."""
    from artifact_inspector.api.launches import predict_launches
    from artifact_inspector.api.memory_errors import check_launches
    from artifact_inspector.diagnosis.assumed_launch import assume_launch
    from artifact_inspector.files.objdump import binary_disassembler

    (kernel,) = inspect_artifacts([entry])
    summary: list[Item] = [{"part": "compile", **list_item(kernel)}]
    try:
        pair = entry, launch or assume_launch(entry)
        (report,) = check_launches([pair], binary_disassembler())
        launch_item, *problems = memory_items(report)
        status = {"status": report.status, "undecided": launch_item.get("undecided"), "notes": pair[1].notes}
        summary += [{"part": "memory", **drop_empty(status)}, *problems]
        details: list[Item] = list(prediction_items(entry, *predict_launches([pair], binary_disassembler())))
    except InspectorError as error:
        return [*summary, {"part": "launch", "message": error.message, "remedy": error.remedy}], []
    return [*summary, {"part": "predict", **{key: details[0][key] for key in ("grid", "judgement")}}], details[1:]


def _answer_capture(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    limits = {name: arguments[name] for name in ("launches", "seconds") if name in arguments}
    runs = capture_program(
        arguments["command"], _target_names(arguments), _output_directory(service, arguments), **limits
    )
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


ANSWERS: Mapping[str, AnswerFunction] = {
    "verify": _answer_verify,
    "try": _answer_try,
    "compile": _answer_compile,
    "capture": _answer_capture,
    "passes": _answer_passes,
}
"""Name of a tool → what answers its calls."""

"""Tools that read caches and run no user code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.selection import narrow, parse_filters, select_kernels
from artifact_inspector.files.index import index_opener
from artifact_inspector.findings import find_findings
from artifact_inspector.model.limits import SIMULATION_SECONDS
from artifact_inspector.serving.items import (
    DEFAULT_PARTS,
    PARTS,
    change_items,
    finding_items,
    identity,
    kernel_items,
    row_item,
)
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
    size_of,
    string_parameter,
    strings_parameter,
    take_fitting,
)

if TYPE_CHECKING:
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.facts.kernel import KernelFacts, View
    from artifact_inspector.files.cache import Artifact, Cache


def inspect_artifacts(artifacts: Sequence[Artifact], view: View | None = None) -> list[KernelFacts]:
    """The facts of some kernels, from the result cache if they are stored there."""
    return list(read_kernels(artifacts, view, ReadOptions(None, index_opener(lambda sentence: None), cores=1)))


def open_requested(service: ToolContext, arguments: Mapping[str, Any]) -> tuple[Cache, tuple[Artifact, ...]]:
    """The requested cache, and its kernels with the requested name and target."""
    cache = service.roots.open_cache(arguments.get("cache"))
    return cache, select_kernels(cache, arguments.get("name"), parse_filters([arguments.get("target", "")]))


def require_one(service: ToolContext, arguments: Mapping[str, Any]) -> Artifact:
    """The one kernel that matches cache, name and target.

    Raises:
        UsageError: none or several match; the remedy lists them.
    """
    cache, artifacts = open_requested(service, arguments)
    if len(artifacts) == 1:
        return artifacts[0]
    if not artifacts:
        raise UsageError(f"No kernels in {cache.title}.", "Give a Triton cache with kernels.")
    listed = ", ".join(
        f"{artifact.display_name} {artifact.target or '?'} {artifact.hash[:12]}" for artifact in artifacts[:6]
    )
    omitted = f" and {len(artifacts) - 6} more" if len(artifacts) > 6 else ""
    raise UsageError(f"{len(artifacts)} kernels match; expected one.", f"Give the hash of one: {listed}{omitted}.")


def _answer_list(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.vocabulary.selection import parse_choice, sort_kernels

    cache, artifacts = open_requested(service, arguments)
    is_match = parse_choice(arguments.get("findings", ()), arguments.get("verdicts", ()), arguments.get("severity"))
    is_filtered = any(arguments.get(name) for name in ("findings", "verdicts", "severity", "sort"))
    offset = int(arguments.get("offset", 0))
    if is_filtered:
        kernels = [
            kernel
            for kernel in inspect_artifacts(artifacts, lambda kernel: (row_item(kernel), None)[1])
            if is_match(kernel)
        ]
        kernels = sort_kernels(kernels, arguments["sort"]) if arguments.get("sort") else kernels
        tool_answer = make_page("list", arguments, [row_item(kernel) for kernel in kernels], bound, "kernels")
    else:
        # read no more kernels than an answer can hold
        page_artifacts = artifacts[offset : offset + max(1, bound.characters // MIN_ROW)]
        rows = [
            row_item(kernel) for kernel in inspect_artifacts(page_artifacts, lambda kernel: (row_item(kernel), None)[1])
        ]
        fitting_rows = take_fitting(rows, bound)
        omitted_count = len(artifacts) - offset - len(fitting_rows)
        call = {"tool": "list", "arguments": {**arguments, "offset": offset + len(fitting_rows)}}
        tool_answer = (
            ToolAnswer(fitting_rows, f"{omitted_count} of {len(artifacts)} kernels", call)
            if omitted_count > 0 and fitting_rows
            else ToolAnswer(fitting_rows)
        )
    return _add_problems(tool_answer, cache)


MIN_ROW = 200
"""Minimal characters of a row of a list."""


def _add_problems(tool_answer: ToolAnswer, cache: Cache) -> ToolAnswer:
    """The answer with the first problem of a cache; their number is in `left_out`."""
    if not cache.problems:
        return tool_answer
    count = f"{len(cache.problems)} problem{'s' if len(cache.problems) > 1 else ''} of files, see `problems`"
    first = [{"path": problem.path, "problem": problem.problem} for problem in cache.problems[:1]]
    return replace(tool_answer, left_out="; ".join(filter(None, (tool_answer.left_out, count))), problems=first)


def _answer_inspect(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    (kernel,) = inspect_artifacts([require_one(service, arguments)])
    part_names = arguments.get("parts") or list(DEFAULT_PARTS)
    region = arguments.get("region")
    if region is not None:
        kernel = narrow(kernel, (), region)
    tool_answer = make_page(
        "inspect", arguments, list(kernel_items(kernel, part_names, region)), bound, f"items of {', '.join(part_names)}"
    )
    if tool_answer.next is None and not arguments.get("parts"):
        other_parts = [part_name for part_name in PARTS if part_name not in part_names]
        other_arguments = {name: value for name, value in arguments.items() if name != "offset"}
        call = {"tool": "inspect", "arguments": {**other_arguments, "parts": other_parts}}
        return ToolAnswer(tool_answer.items, f"not requested: {', '.join(other_parts)}", call)
    return tool_answer


def _answer_lines(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.facts.modules import read_source
    from artifact_inspector.model import Stage

    artifact = require_one(service, arguments)
    stages = {stage.value: stage for stage in Stage if stage.value in artifact.files}
    if arguments["stage"] not in stages:
        raise UsageError(f"The kernel has no stage {arguments['stage']!r}.", f"It has {', '.join(stages) or 'none'}.")
    source = read_source(artifact, stages[arguments["stage"]], [], None)
    last = 0 if source is None else len(source.line_starts)
    first, requested_last = int(arguments.get("first", 1)), int(arguments.get("last", last))
    numbers = range(first, min(requested_last, last) + 1)
    fitting_lines = take_fitting(
        ({"line": number, "text": source.line_text(number).expandtabs(4)} for number in numbers if source), bound
    )
    omitted_count = len(numbers) - len(fitting_lines)
    call = {"tool": "lines", "arguments": {**arguments, "first": first + len(fitting_lines)}}
    return (
        ToolAnswer(fitting_lines, f"{omitted_count} of {len(numbers)} lines", call)
        if omitted_count > 0
        else ToolAnswer(fitting_lines)
    )


def _answer_findings(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.vocabulary.selection import parse_choice

    cache, artifacts = open_requested(service, arguments)
    is_match = parse_choice(arguments.get("codes", ()), (), arguments.get("severity"))
    codes = set(arguments.get("codes", ()))
    offset, skipped = int(arguments.get("offset", 0)), int(arguments.get("finding_offset", 0))
    free_characters = bound.characters
    fitting_items: list[Item] = []
    for index in range(offset, len(artifacts)):
        (kernel,) = inspect_artifacts(artifacts[index : index + 1], lambda kernel: (find_findings(kernel), None)[1])
        kernel_findings = find_findings(kernel) if is_match(kernel) else ()
        selected_findings = [
            finding for finding in kernel_findings if not codes or {finding.code, finding.name} & codes
        ][skipped if index == offset else 0 :]
        items = [{**identity(kernel.artifact), **item} for item in finding_items(kernel, selected_findings)]
        size = sum(size_of(item) for item in items)
        if size > free_characters:
            # a kernel whose findings fit on no page is continued on the next
            page_items = [] if fitting_items else take_fitting(items, bound)
            first_finding = (skipped if index == offset else 0) + len(page_items)
            call_arguments = {**arguments, "offset": index, "finding_offset": first_finding}
            is_complete = bool(page_items) and len(page_items) == len(items)
            if is_complete:
                call_arguments |= {"offset": index + 1, "finding_offset": 0}
            remaining = len(artifacts) - index - is_complete
            if not remaining:
                return _add_problems(ToolAnswer(page_items), cache)
            left_out = f"{remaining} of {len(artifacts)} kernels were not read, or not completely"
            call = {"tool": "findings", "arguments": call_arguments}
            return _add_problems(ToolAnswer(fitting_items or page_items, left_out, call), cache)
        fitting_items += take_fitting(items, bound)
        free_characters -= size
    return _add_problems(ToolAnswer(fitting_items), cache)


def _answer_diff(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.comparison.corpus import compare_corpora
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.facts.inspection import inspect_artifact

    sides = []
    for side in ("left", "right"):
        side_arguments = {"cache": arguments.get(side, arguments.get("left"))}
        side_arguments["name"] = arguments.get(f"{side}_name", arguments.get("name"))
        side_arguments["target"] = arguments.get(f"{side}_target", arguments.get("target", ""))
        sides.append(open_requested(service, side_arguments)[1])
    left_artifacts, right_artifacts = sides
    is_single_pair = len(left_artifacts) == len(right_artifacts) == 1
    corpus = compare_corpora(
        left_artifacts, right_artifacts, inspect_artifact, across=parse_axes(arguments.get("across", ())),
        is_one_pair=is_single_pair, always=is_single_pair,
    )  # fmt: skip
    if not corpus.changes:
        raise UsageError(
            f"None of {len(left_artifacts)} kernels on the left matches any of {len(right_artifacts)} on the right.",
            "Give one per side (left_name, right_name), or allow a difference: across=['config'].",
        )
    return make_page("diff", arguments, list(change_items(corpus)), bound, "differences")


def _answer_explain(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.report.definitions import explain_term

    items = [meaning._asdict() for meaning in explain_term(arguments["word"])]
    return make_page("explain", arguments, items, bound, "meanings")


def _find_launches(
    service: ToolContext, tool_arguments: Mapping[str, Any], *, all_variants: bool = False
) -> list[tuple[Artifact, LaunchRequest]]:
    """The given launch, or the recorded launches with the given changes, each with its kernel."""
    from artifact_inspector.api.launches import find_launches, pair_launches
    from artifact_inspector.execution.launch_requests import parse_argument

    cache, name = service.roots.open_cache(tool_arguments.get("cache")), tool_arguments.get("name")
    targets = parse_filters([tool_arguments.get("target", "")])
    argument_texts = tool_arguments.get("arguments", {}).items()
    arguments = dict(parse_argument(f"{argument_name}={value}") for argument_name, value in argument_texts)
    requests = find_launches(cache, name, targets, tool_arguments.get("grid"), arguments, all_variants=all_variants)
    if not requests:
        raise UsageError("The cache has no such launch recorded.", "Give grid and arguments.")
    return pair_launches(cache, name, targets, requests, all_variants=all_variants)


def _answer_predict(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.launches import predict_launches
    from artifact_inspector.execution.interpreter.budget import limit_simulation
    from artifact_inspector.files.objdump import binary_disassembler

    pairs = _find_launches(service, arguments)
    offset, items = int(arguments.get("offset", 0)), list[Item]()
    # simulate only the launches that fit; `next` requests the others
    while pairs and (len(items) <= offset or sum(map(size_of, items[offset:])) <= bound.characters):
        entry, request = pairs.pop(0)
        with limit_simulation(SIMULATION_SECONDS.value):
            (prediction,) = predict_launches([(entry, request)], binary_disassembler(), gpu=arguments.get("gpu"))
        items += _prediction_items(entry, prediction)
    return make_page("predict", arguments, items, bound, "items", pending=f"{len(pairs)} launches" if pairs else None)


def _prediction_items(entry: Artifact, prediction: Prediction) -> list[Item]:
    """A simulated launch as items."""
    from artifact_inspector.findings import find_launch_findings
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.prediction import prediction_document

    document = encode(prediction_document([prediction]))
    plain = {key: value for key, value in document.items() if not isinstance(value, list | dict)}
    items = [
        {"part": "launch", **identity(entry), "grid": document["grid"], **plain},
        {"part": "counters", **document["counters"]},
    ]
    items += [{"part": "finding", **encode(finding)} for finding in find_launch_findings(prediction)]
    lists = [(key, value) for key, value in document.items() if isinstance(value, list) and key != "findings"]
    return items + [{"part": key, **member} for key, rows in lists for member in rows if isinstance(member, dict)]


def _answer_rank(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.ranking_problems import rank_recorded
    from artifact_inspector.execution.interpreter.budget import limit_simulation
    from artifact_inspector.execution.timing.ranking import rank_launches
    from artifact_inspector.files.objdump import binary_disassembler
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.prediction import RankingDocument

    problem = rank_recorded(_find_launches(service, arguments, all_variants=True))
    with limit_simulation(SIMULATION_SECONDS.value):
        ranking = rank_launches(problem.candidates, binary_disassembler(), gpu=arguments.get("gpu"))
    rows = encode(RankingDocument(rank=tuple(ranking)))["rank"]
    if problem.problem_labels:
        rows = [{"problem": problem.problem_labels[row["launch"]], **row} for row in rows]
    return make_page("rank", arguments, rows, bound, "launches")


def _answer_advise(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.advice import assume_launches, diagnose_launches
    from artifact_inspector.api.launches import find_launches
    from artifact_inspector.execution.interpreter.budget import limit_simulation
    from artifact_inspector.files.objdump import binary_disassembler
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.advise import advice_document

    cache, name = service.roots.open_cache(arguments.get("cache")), arguments.get("name")
    targets = parse_filters([arguments.get("target", "")])
    is_recorded = bool(find_launches(cache, name, targets, None, {}))
    pairs = _find_launches(service, arguments) if is_recorded else assume_launches(cache, name, targets)
    with limit_simulation(SIMULATION_SECONDS.value):
        diagnoses = diagnose_launches(pairs[:1], binary_disassembler(), gpu=arguments.get("gpu"))
    items: list[Item] = []
    for row in encode(advice_document(diagnoses, [None] * len(diagnoses)))["kernels"]:
        causes = row.pop("causes")
        items += [{"part": "launch", **row}, *({"part": "cause", **cause} for cause in causes)]
    return make_page("advise", arguments, items, bound, "parts")


_ARGUMENTS = "Name → fp16[2048,2048] for a tensor, or a number. Default: those of the recorded launch."
READING_TOOLS = (
    McpTool(
        "list",
        "List the kernels of a Triton cache: GPU, order of loads and computes, registers, shared memory, "
        "spills, blocks per SM, codes of findings. Start here.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER, OFFSET_PARAMETER,
            strings_parameter("findings", "Only kernels with one of these findings: AI003 …"),
            strings_parameter("verdicts", "Only kernels with these verdicts: serial, pipelined …"),
            string_parameter("severity", "Only kernels with a finding of this severity: warning or note."),
            string_parameter("sort", "name, time, verdict, spills, occupancy or size; -name reverses the order."),
        ),
        _answer_list,
    ),
    McpTool(
        "inspect",
        "Show one kernel: findings, order at every stage, resources, why loads are narrow. `parts` selects "
        f"from {', '.join(PARTS)}.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER, OFFSET_PARAMETER,
            ToolParameter(
                "parts", {"type": "array", "items": {"enum": list(PARTS)}, "description": "Parts to return."}
            ),
            string_parameter("region", "Only this loop or straight-line code: loop@81, straight …"),
        ),
        _answer_inspect,
    ),
    McpTool(
        "lines",
        "Print lines of one file of a kernel: TTIR, TTGIR, LLIR, PTX or AMDGCN.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER,
            string_parameter("stage", "ttir, ttgir, llir, ptx, amdgcn.", required=True),
            integer_parameter("first", "The first line.", 1), integer_parameter("last", "The last line.", 1),
        ),
        _answer_lines,
    ),
    McpTool(
        "findings",
        "List likely performance and correctness problems, worst first, with lines as evidence. `explain` "
        "explains a code.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER,
            integer_parameter("offset", "Skip this many kernels; `next` of an answer contains it."),
            integer_parameter("finding_offset", "Skip this many findings of the first kernel."),
            strings_parameter("codes", "Only these: AI003, narrow-loads …"),
            string_parameter("severity", "Only kernels with a finding of this severity: warning or note."),
        ),
        _answer_findings,
    ),
    McpTool(
        "diff",
        "Compare two kernels or two caches, and name the compiler stage where they first differ. One cache "
        "and two targets compare a kernel on two GPUs.",
        (
            string_parameter("left", "A cache directory.", required=True),
            string_parameter("right", "The other one. Default: `left`."),
            NAME_PARAMETER, string_parameter("left_name", "Part of a name or hash on the left."),
            string_parameter("right_name", "Part of a name or hash on the right."),
            string_parameter("left_target", "GPU, Triton version, w4, tile … on the left."),
            string_parameter("right_target", "The same on the right."), OFFSET_PARAMETER,
            strings_parameter("across", "Pair kernels that differ in this: target, version, config, source."),
        ),
        _answer_diff,
    ),
    McpTool(
        "predict",
        "Predict what a launch executes, transfers and waits for, by simulating its machine code: "
        "instructions, sectors, bank conflicts, waves. No GPU needed.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER,
            string_parameter("grid", "CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'. Default: recorded."),
            ToolParameter(
                "arguments",
                {"type": "object", "description": _ARGUMENTS}, False,
            ),
            string_parameter("gpu", "The product whose L2 size and SM count are used: H200 …"), OFFSET_PARAMETER,
        ),
        _answer_predict,
    ),
    McpTool(
        "rank",
        "Rank compiled variants of an NVIDIA kernel (blocks, warps, stages) for one launch, fastest first, "
        "by simulation. Returns an order, not times. Variants of another `problem` (kernel, arguments) are "
        "ranked separately.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER,
            string_parameter("grid", "CTAs, from the constants of each variant: 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'."),
            ToolParameter(
                "arguments",
                {"type": "object", "description": _ARGUMENTS}, False,
            ),
            string_parameter("gpu", "Rank for this product: H200 …"), OFFSET_PARAMETER,
        ),
        _answer_rank,
    ),
    McpTool(
        "advise",
        "Name what takes the time of a kernel: causes by source line, the first one first. Without a recorded launch "
        "one is assumed, see `notes`. Diagnoses one launch: name the kernel.",
        (
            CACHE_PARAMETER, NAME_PARAMETER, TARGET_PARAMETER,
            string_parameter("gpu", "Model this product: H200 …"), OFFSET_PARAMETER,
        ),
        _answer_advise,
    ),
    McpTool(
        "explain",
        "Explain a code of a finding, a verdict, a fact or a term of these answers.",
        (
            string_parameter("word", "AI003, narrow-loads, pipelined, registers, ttgir …", required=True),
            OFFSET_PARAMETER,
        ),
        _answer_explain,
    ),
)  # fmt: skip
"""Tools that read caches and run no user code."""

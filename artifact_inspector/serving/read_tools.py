"""Tools that read caches and run no user code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from artifact_inspector.api.kept_values import kept_values
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.selection import narrow, parse_filters, select_kernels
from artifact_inspector.files.index import index_opener
from artifact_inspector.findings import find_findings
from artifact_inspector.hardware.products import modelled_product
from artifact_inspector.serving.catalog import PARTS
from artifact_inspector.serving.items import DEFAULT_PARTS, finding_items, identity, kernel_items, list_item
from artifact_inspector.serving.tool import (
    AnswerBound,
    AnswerFunction,
    Item,
    ToolAnswer,
    ToolContext,
    make_page,
    size_of,
    take_fitting,
)
from artifact_inspector.vocabulary.selection import cost_of, find_key, parse_choice, sort_by_keys

if TYPE_CHECKING:
    from artifact_inspector.execution.launch_requests import LaunchRequest
    from artifact_inspector.facts.kernel import KernelFacts, View
    from artifact_inspector.files.cache import Artifact, Cache


def inspect_artifacts(artifacts: Sequence[Artifact], view: View | None = None) -> list[KernelFacts]:
    """The facts of some kernels, from the result cache if they are stored there."""
    return list(read_kernels(artifacts, view, ReadOptions(None, index_opener(lambda sentence: None), cores=1)))


def open_requested(service: ToolContext, arguments: Mapping[str, Any]) -> tuple[Cache, tuple[Artifact, ...]]:
    """The requested cache, and its kernels with the requested name and target."""
    cache = service.roots.open_cache(arguments.get("cache"))
    return cache, select_kernels(cache, arguments.get("kernel"), parse_filters([arguments.get("target", "")]))


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
    cache, artifacts = open_requested(service, arguments)
    filters = [arguments.get(name) for name in ("findings", "verdicts", "severity")]
    if any(filters) or arguments.get("sort") or len(artifacts) <= MAX_SORTED:
        return _add_problems(make_page("list", arguments, _sort_rows(artifacts, arguments), bound, "kernels"), cache)
    # read no more kernels than an answer can hold
    offset = int(arguments.get("offset", 0))
    rows = map(list_item, _read_rows(artifacts[offset : offset + max(1, bound.characters // MIN_ROW)]))
    fitting_rows = take_fitting(rows, bound)
    omitted_count = len(artifacts) - offset - len(fitting_rows)
    call = {"tool": "list", "arguments": {**arguments, "offset": offset + len(fitting_rows)}}
    left_out = f"{omitted_count} of {len(artifacts)} kernels, by name; sort='cost' reads all"
    has_more = omitted_count > 0 and fitting_rows
    return _add_problems(ToolAnswer(fitting_rows, *((left_out, call) if has_more else ())), cache)


MIN_ROW = 100
"""Minimal characters of a row of a list."""
MAX_SORTED = 200
"""Kernels that are all read to list the worst first."""


def _sort_rows(artifacts: Sequence[Artifact], arguments: Mapping[str, Any]) -> list[Item]:
    """The rows of the kernels that match, in the requested order; the index keeps those of all kernels by cost."""
    filters = arguments.get("findings", ()), arguments.get("verdicts", ()), arguments.get("severity")
    sort_key = arguments.get("sort", "cost")
    is_match, key_of = parse_choice(*filters), find_key(sort_key)

    def compute(some_artifacts: Sequence[Artifact]) -> Iterator[tuple[Any, Item]]:
        return ((key_of(kernel), list_item(kernel)) for kernel in _read_rows(some_artifacts) if is_match(kernel))

    is_kept = key_of is cost_of and not any(filters)
    open_index = index_opener(lambda sentence: None) if is_kept else None
    rows = kept_values(artifacts, b"row", _identity_text, compute, open_index, _is_row)
    return sort_by_keys([(tuple(key) if isinstance(key, list) else key, item) for key, item in rows], sort_key)


def _identity_text(artifact: Artifact) -> str:
    return repr((identity(artifact), artifact.hash))


def _is_row(value: object) -> bool:
    match value:
        case [list() as cost, {"kernel": str(), **_others}]:
            return all(isinstance(number, int) for number in cost)
    return False


def _read_rows(artifacts: Sequence[Artifact]) -> list[KernelFacts]:
    return inspect_artifacts(artifacts, lambda kernel: (list_item(kernel), None)[1])


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
    cache, artifacts = open_requested(service, arguments)
    codes = set(arguments.get("codes", ()))
    is_match = parse_choice(arguments.get("codes", ()), (), arguments.get("severity"))
    offset, items, pending = int(arguments.get("offset", 0)), list[Item](), [*artifacts]
    # read no more kernels than an answer can hold
    while pending and (len(items) <= offset or sum(map(size_of, items[offset:])) <= bound.characters):
        (kernel,) = inspect_artifacts([pending.pop(0)], lambda kernel: (find_findings(kernel), None)[1])
        if is_match(kernel):
            selected = [x for x in find_findings(kernel) if not codes or {x.code, x.name} & codes]
            items += [{**identity(kernel.artifact), **item} for item in finding_items(kernel, selected)]
    unread = f"{len(pending)} of {len(artifacts)} kernels were not read" if pending else None
    return _add_problems(make_page("findings", arguments, items, bound, "findings", pending=unread), cache)


def _answer_diff(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.comparison.corpus import compare_corpora
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.facts.inspection import inspect_artifact
    from artifact_inspector.serving.changes_and_launches import change_items

    others = {name: arguments.get(f"other_{name}", arguments.get(name, "")) for name in ("cache", "kernel", "target")}
    sides = [open_requested(service, side)[1] for side in (arguments, {**others, "kernel": others["kernel"] or None})]
    left_artifacts, right_artifacts = sides
    is_single_pair = len(left_artifacts) == len(right_artifacts) == 1
    if is_single_pair and left_artifacts[0].files == right_artifacts[0].files:
        raise UsageError(
            f"Both sides are the same kernel, {left_artifacts[0].display_name} {left_artifacts[0].hash[:12]}.",
            "Give the other one: other_kernel, other_cache or other_target.",
        )
    corpus = compare_corpora(
        left_artifacts, right_artifacts, inspect_artifact, across=parse_axes(arguments.get("across", ())),
        is_one_pair=is_single_pair, always=is_single_pair,
    )  # fmt: skip
    if not corpus.changes:
        raise UsageError(
            f"None of {len(left_artifacts)} kernels matches any of the {len(right_artifacts)} others.",
            "Give one per side (kernel, other_kernel), or allow a difference: across=['config'].",
        )
    return make_page("diff", arguments, list(change_items(corpus)), bound, "differences")


def _answer_explain(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.report.definitions import explain_term

    items = [meaning._asdict() for meaning in explain_term(arguments["term"])]
    return make_page("explain", arguments, items, bound, "meanings")


def _find_launches(
    service: ToolContext, tool_arguments: Mapping[str, Any], *, all_variants: bool = False
) -> list[tuple[Artifact, LaunchRequest]]:
    """The given launch, or the recorded launches with the given changes, each with its kernel."""
    from artifact_inspector.api.launches import find_launches, pair_launches
    from artifact_inspector.execution.launch_requests import parse_argument

    cache, name = service.roots.open_cache(tool_arguments.get("cache")), tool_arguments.get("kernel")
    targets = parse_filters([tool_arguments.get("target", "")])
    argument_texts = tool_arguments.get("arguments", {}).items()
    arguments = dict(parse_argument(f"{argument_name}={value}") for argument_name, value in argument_texts)
    requests = find_launches(cache, name, targets, tool_arguments.get("grid"), arguments, all_variants=all_variants)
    if not requests:
        raise UsageError("The cache has no such launch recorded.", "Give grid and arguments.")
    return pair_launches(cache, name, targets, requests, all_variants=all_variants)


def _answer_predict(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.launches import predict_launches
    from artifact_inspector.execution.interpreter.budget import current_budget
    from artifact_inspector.files.objdump import binary_disassembler
    from artifact_inspector.serving.changes_and_launches import prediction_items

    pairs, budget = _find_launches(service, arguments), current_budget()
    offset, items = int(arguments.get("offset", 0)), list[Item]()
    # simulate only the launches that fit; `next` requests the others
    while pairs and (len(items) <= offset or sum(map(size_of, items[offset:])) <= bound.characters):
        if items and budget is not None and budget.is_spent():
            page = make_page("predict", arguments, items, bound, "items")
            return replace(
                page, left_out=" ".join(filter(None, [page.left_out, f"{len(pairs)} launches: {budget.reason}"]))
            )
        entry, request = pairs.pop(0)
        (prediction,) = predict_launches([(entry, request)], binary_disassembler(), gpu=_product(arguments))
        items += prediction_items(entry, prediction)
    return make_page("predict", arguments, items, bound, "items", pending=f"{len(pairs)} launches" if pairs else None)


def _product(arguments: Mapping[str, Any]) -> str | None:
    return modelled_product(arguments.get("gpu"), [arguments.get("target", "")])


def _answer_rank(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.ranking_problems import rank_recorded
    from artifact_inspector.execution.timing.ranking import rank_launches
    from artifact_inspector.files.objdump import binary_disassembler
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.prediction import RankingDocument

    problem = rank_recorded(_find_launches(service, arguments, all_variants=True))
    ranking = rank_launches(problem.candidates, binary_disassembler(), gpu=_product(arguments))
    rows = encode(RankingDocument(rank=tuple(ranking)))["rank"]
    if problem.problem_labels:
        rows = [{"problem": problem.problem_labels[row["launch"]], **row} for row in rows]
    return make_page("rank", arguments, rows, bound, "launches")


def _answer_advise(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.advice import diagnose_launches, with_launch_times
    from artifact_inspector.files.objdump import binary_disassembler
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.advise import advice_document

    pairs = launched_kernels(service, arguments)
    disassemble, gpu = binary_disassembler(), _product(arguments)
    diagnoses = diagnose_launches(pairs[:1], disassemble, gpu=gpu)
    diagnoses = with_launch_times(pairs, diagnoses, disassemble, gpu=gpu)
    items: list[Item] = []
    for row in encode(advice_document(diagnoses, [None] * len(diagnoses)))["kernels"]:
        causes = row.pop("causes")
        items += [{"part": "launch", **row}, *({"part": "cause", **cause} for cause in causes)]
    return make_page("advise", arguments, items, bound, "parts")


def _answer_check_memory(service: ToolContext, arguments: Mapping[str, Any], bound: AnswerBound) -> ToolAnswer:
    from artifact_inspector.api.memory_errors import check_launches
    from artifact_inspector.files.objdump import binary_disassembler
    from artifact_inspector.serving.changes_and_launches import memory_items

    reports = check_launches(launched_kernels(service, arguments), binary_disassembler())
    return make_page(
        "check-memory", arguments, [item for report in reports for item in memory_items(report)], bound, "items"
    )


def launched_kernels(service: ToolContext, arguments: Mapping[str, Any]) -> list[tuple[Artifact, LaunchRequest]]:
    """The given or recorded launches with their kernels; without any, an assumed launch of each kernel."""
    from artifact_inspector.api.advice import assume_launches
    from artifact_inspector.api.launches import find_launches

    cache, name = service.roots.open_cache(arguments.get("cache")), arguments.get("kernel")
    targets = parse_filters([arguments.get("target", "")])
    if arguments.get("grid") or find_launches(cache, name, targets, None, {}):
        return _find_launches(service, arguments)
    return assume_launches(cache, name, targets)


ANSWERS: Mapping[str, AnswerFunction] = {
    "list": _answer_list, "inspect": _answer_inspect, "lines": _answer_lines, "findings": _answer_findings,
    "diff": _answer_diff, "predict": _answer_predict, "rank": _answer_rank, "check-memory": _answer_check_memory,
    "advise": _answer_advise, "explain": _answer_explain,
}  # fmt: skip
"""Name of a tool → what answers its calls."""

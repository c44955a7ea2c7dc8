"""Tools that read caches and run no user code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.facts.selection import choose, narrow, parse_which
from artifact_inspector.files.index import opener
from artifact_inspector.findings import find_findings
from artifact_inspector.serving.bounds import Answer, Bound, Item, fit, safe, size_of
from artifact_inspector.serving.items import (
    BY_DEFAULT,
    PARTS,
    change_items,
    finding_items,
    identity,
    kernel_items,
    row_item,
)
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

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction
    from artifact_inspector.execution.requests import Request
    from artifact_inspector.facts.kernel import KernelFacts, View
    from artifact_inspector.files.cache import Artifact, Cache


def facts_of(chosen: Sequence[Artifact], view: View | None = None) -> list[KernelFacts]:
    """The facts of some kernels, from the result cache if they are stored there."""
    return list(read_kernels(chosen, view, ReadOptions(None, opener(lambda sentence: None), cores=1)))


def opened(service: Service, given: Mapping[str, Any]) -> tuple[Cache, tuple[Artifact, ...]]:
    """The requested cache, and its kernels with the requested name and target."""
    cache = service.roots.open_cache(given.get("cache"))
    return cache, choose(cache, given.get("name"), parse_which([given.get("target", "")]))


def only_one(service: Service, given: Mapping[str, Any]) -> Artifact:
    """The one kernel that matches cache, name and target.

    Raises:
        UsageError: none or several match; the remedy lists them.
    """
    cache, chosen = opened(service, given)
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UsageError(f"No kernels in {cache.root}.", "Give a Triton cache with kernels.")
    listed = ", ".join(f"{one.display_name} {one.target or '?'} {one.hash[:12]}" for one in chosen[:6])
    more = f" and {len(chosen) - 6} more" if len(chosen) > 6 else ""
    raise UsageError(f"{len(chosen)} kernels match; expected one.", f"Give the hash of one: {listed}{more}.")


def _list(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.vocabulary.choice import order, parse_choice

    cache, chosen = opened(service, given)
    is_meant = parse_choice(given.get("findings", ()), given.get("verdicts", ()), given.get("severity"))
    narrows = any(given.get(name) for name in ("findings", "verdicts", "severity", "sort"))
    offset = int(given.get("offset", 0))
    if narrows:
        found = [
            kernel
            for kernel in facts_of(chosen, lambda kernel: (row_item(kernel), None)[1])
            if is_meant(kernel)
        ]
        found = order(found, given["sort"]) if given.get("sort") else found
        answer = page("list", given, [row_item(kernel) for kernel in found], bound, "kernels")
    else:
        # read no more kernels than an answer can hold
        some = chosen[offset : offset + bound.characters // LEAST_ROW]
        rows = [row_item(kernel) for kernel in facts_of(some, lambda kernel: (row_item(kernel), None)[1])]
        kept = fit(rows, bound)
        left = len(chosen) - offset - len(kept)
        call = {"tool": "list", "arguments": {**safe(dict(given)), "offset": offset + len(kept)}}
        answer = Answer(kept, f"{left} of {len(chosen)} kernels", call) if left > 0 else Answer(kept)
    return _with_problems(answer, cache)


LEAST_ROW = 200
"""Minimal characters of a row of a list."""


def _with_problems(answer: Answer, cache: Cache) -> Answer:
    if not cache.problems:
        return answer
    said = f"{len(cache.problems)} problems: {cache.problems[0].path}: {cache.problems[0].problem}"
    left = "; ".join(filter(None, (answer.left_out, str(safe(said)))))
    return Answer(answer.items, left, answer.next)


def _inspect(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    (kernel,) = facts_of([only_one(service, given)])
    parts = given.get("parts") or list(BY_DEFAULT)
    region = given.get("region")
    if region is not None:
        kernel = narrow(kernel, (), region)
    answer = page(
        "inspect", given, list(kernel_items(kernel, parts, region)), bound, f"items of {', '.join(parts)}"
    )
    if answer.next is None and not given.get("parts"):
        rest = [part for part in PARTS if part not in parts]
        call = {"tool": "inspect", "arguments": {**safe(dict(given)), "parts": rest[:1]}}
        return Answer(answer.items, f"not requested: {', '.join(rest)}", call)
    return answer


def _lines(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.facts.modules import read_source
    from artifact_inspector.model import Stage

    artifact = only_one(service, given)
    known = {stage.value: stage for stage in Stage if stage.value in artifact.files}
    if given["stage"] not in known:
        raise UsageError(
            f"The kernel has no stage {given['stage']!r}.", f"It has {', '.join(known) or 'none'}."
        )
    source = read_source(artifact, known[given["stage"]], [], None)
    last = 0 if source is None else len(source.line_starts)
    first, asked = int(given.get("first", 1)), int(given.get("last", last))
    numbers = range(first, min(asked, last) + 1)
    kept = fit(
        ({"line": number, "text": source.line_text(number).expandtabs(4)} for number in numbers if source),
        bound,
    )
    left = len(numbers) - len(kept)
    call = {"tool": "lines", "arguments": {**safe(dict(given)), "first": first + len(kept)}}
    return Answer(kept, f"{left} of {len(numbers)} lines", call) if left > 0 else Answer(kept)


def _findings(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.vocabulary.choice import parse_choice

    cache, chosen = opened(service, given)
    is_meant = parse_choice(given.get("codes", ()), (), given.get("severity"))
    codes = set(given.get("codes", ()))
    offset, room = int(given.get("offset", 0)), bound.characters
    kept: list[Item] = []
    for place in range(offset, len(chosen)):
        (kernel,) = facts_of(chosen[place : place + 1], lambda kernel: (find_findings(kernel), None)[1])
        found = find_findings(kernel) if is_meant(kernel) else ()
        some = [one for one in found if not codes or {one.code, one.name} & codes]
        items = [{**identity(kernel.artifact), **item} for item in finding_items(kernel, some)]
        size = sum(size_of(item) for item in items)
        if size > room and kept:
            left = len(chosen) - place
            call = {"tool": "findings", "arguments": {**safe(dict(given)), "offset": place}}
            return _with_problems(Answer(kept, f"{left} of {len(chosen)} kernels were not read", call), cache)
        if size > room:
            own = {"cache": given.get("cache"), "name": kernel.artifact.hash, "parts": ["findings"]}
            some_items = fit(items, bound)
            call = {"tool": "inspect", "arguments": {**safe(own), "offset": len(some_items)}}
            left = len(items) - len(some_items)
            rest = f", and {len(chosen) - place - 1} kernels" if place + 1 < len(chosen) else ""
            return Answer(some_items, f"{left} findings of {identity(kernel.artifact)['kernel']}{rest}", call)
        kept += fit(items, bound)
        room -= size
    return _with_problems(Answer(kept), cache)


def _diff(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.comparison.corpus import compare_corpora
    from artifact_inspector.comparison.matching import parse_axes
    from artifact_inspector.facts.inspection import inspect_artifact

    sides = []
    for side in ("left", "right"):
        asked = {"cache": given.get(side, given.get("left"))}
        asked["name"] = given.get(f"{side}_name", given.get("name"))
        asked["target"] = given.get(f"{side}_target", given.get("target", ""))
        sides.append(opened(service, asked)[1])
    left, right = sides
    together = len(left) == len(right) == 1
    corpus = compare_corpora(
        left, right, inspect_artifact, across=parse_axes(given.get("across", ())), together=together,
        always=together,
    )  # fmt: skip
    if not corpus.changes:
        raise UsageError(
            f"None of {len(left)} kernels on the left matches any of {len(right)} on the right.",
            "Give one per side (left_name, right_name), or allow a difference: across=['config'].",
        )
    return page("diff", given, list(change_items(corpus)), bound, "differences")


def _explain(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.report.meaning import explain_word

    items = [meaning._asdict() for meaning in explain_word(given["word"])]
    return page("explain", given, items, bound, "meanings")


def _launches(
    service: Service, given: Mapping[str, Any], *, every: bool = False
) -> list[tuple[Artifact, Request]]:
    """The given launch, or the recorded launches with the given changes, each with its kernel."""
    from artifact_inspector.api.predicting import asked_launches, pair_launches
    from artifact_inspector.execution.requests import parse_argument

    cache, name = service.roots.open_cache(given.get("cache")), given.get("name")
    targets = parse_which([given.get("target", "")])
    words = given.get("arguments", {}).items()
    arguments = dict(parse_argument(f"{word}={value}") for word, value in words)
    found = asked_launches(cache, name, targets, given.get("grid"), arguments, every=every)
    if not found:
        raise UsageError("The cache has no such launch recorded.", "Give grid and arguments.")
    return pair_launches(cache, name, targets, found, every=every)


def _predict(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.api.predicting import predict_launches
    from artifact_inspector.files.objdump import disassembling

    pairs = _launches(service, given)
    offset, told = int(given.get("offset", 0)), list[Item]()
    # simulate only the launches that fit; `next` requests the others
    while pairs and (len(told) <= offset or sum(map(size_of, told[offset:])) <= bound.characters):
        entry, request = pairs.pop(0)
        (found,) = predict_launches([(entry, request)], disassembling(), gpu=given.get("gpu"))
        told += _told(entry, found)
    answer = page("predict", given, told, bound, "items")
    return replace(answer, left_out=f"{answer.left_out}, and {len(pairs)} launches") if pairs else answer


def _told(entry: Artifact, found: Prediction) -> list[Item]:
    """A simulated launch as items."""
    from artifact_inspector.findings import find_launch_findings
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.prediction import prediction_document

    document = encode(prediction_document([found]))
    plain = {key: value for key, value in document.items() if not isinstance(value, list | dict)}
    told = [
        {"part": "launch", **identity(entry), "grid": document["grid"], **plain},
        {"part": "counters", **document["counters"]},
    ]
    told += [{"part": "finding", **encode(finding)} for finding in find_launch_findings(found)]
    lists = [(key, value) for key, value in document.items() if isinstance(value, list) and key != "findings"]
    return told + [{"part": key, **one} for key, rows in lists for one in rows if isinstance(one, dict)]


def _rank(service: Service, given: Mapping[str, Any], bound: Bound) -> Answer:
    from artifact_inspector.api.contests import enter_record
    from artifact_inspector.execution.timing.ranking import rank_launches
    from artifact_inspector.files.objdump import disassembling
    from artifact_inspector.report.json import encode
    from artifact_inspector.report.json.ranking import RankingDocument

    pairs = _launches(service, given, every=True)
    contest = enter_record(pairs)
    found = rank_launches(contest.contestants, disassembling(), gpu=given.get("gpu"))
    rows = encode(RankingDocument(rank=tuple(found)))["rank"]
    if contest.problems:
        rows = [{"problem": contest.problems[row["launch"]], **row} for row in rows]
    return page("rank", given, rows, bound, "launches")


_ARGUMENTS = "Name → fp16[2048,2048] for a tensor, or a number. Default: those of the recorded launch."
READING = (
    Tool(
        "list",
        "List the kernels of a Triton cache: GPU, order of loads and computes, registers, shared memory, "
        "spills, blocks per SM, codes of findings. Start here.",
        (
            CACHE, NAME, TARGET, OFFSET,
            texts("findings", "Only kernels with one of these findings: AI003 …"),
            texts("verdicts", "Only kernels with these verdicts: serial, pipelined …"),
            text("severity", "Only kernels with a finding of this severity: warning or note."),
            text("sort", "name, time, verdict, spills, occupancy or size; -name reverses the order."),
        ),
        _list,
    ),
    Tool(
        "inspect",
        "Show one kernel: findings, order at every stage, resources, why loads are narrow. `parts` selects "
        f"from {', '.join(PARTS)}.",
        (
            CACHE, NAME, TARGET, OFFSET,
            Parameter(
                "parts", {"type": "array", "items": {"enum": list(PARTS)}, "description": "Parts to return."}
            ),
            text("region", "Only this loop or straight-line code: loop@81, straight …"),
        ),
        _inspect,
    ),
    Tool(
        "lines",
        "Print lines of one file of a kernel: TTIR, TTGIR, LLIR, PTX or AMDGCN.",
        (
            CACHE, NAME, TARGET, text("stage", "ttir, ttgir, llir, ptx, amdgcn.", required=True),
            number("first", "The first line.", 1), number("last", "The last line.", 1),
        ),
        _lines,
    ),
    Tool(
        "findings",
        "List likely performance and correctness problems, worst first, with lines as evidence. `explain` "
        "explains a code.",
        (
            CACHE, NAME, TARGET, OFFSET, texts("codes", "Only these: AI003, narrow-loads …"),
            text("severity", "Only kernels with a finding of this severity: warning or note."),
        ),
        _findings,
    ),
    Tool(
        "diff",
        "Compare two kernels or two caches, and name the compiler stage where they first differ. One cache "
        "and two targets compare a kernel on two GPUs.",
        (
            text("left", "A cache directory.", required=True),
            text("right", "The other one. Default: `left`."),
            NAME, text("left_name", "Part of a name or hash on the left."),
            text("right_name", "Part of a name or hash on the right."),
            text("left_target", "GPU, Triton version, w4, tile … on the left."),
            text("right_target", "The same on the right."), OFFSET,
            texts("across", "Pair kernels that differ in this: target, version, config, source."),
        ),
        _diff,
    ),
    Tool(
        "predict",
        "Predict what a launch executes, transfers and waits for, by simulating its machine code: "
        "instructions, sectors, bank conflicts, waves. No GPU needed.",
        (
            CACHE, NAME, TARGET,
            text("grid", "CTAs: 1024, or 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'. Default: recorded."),
            Parameter(
                "arguments",
                {"type": "object", "description": _ARGUMENTS}, False,
            ),
            text("gpu", "The product whose L2 size and SM count are used: H200 …"), OFFSET,
        ),
        _predict,
    ),
    Tool(
        "rank",
        "Rank compiled variants of an NVIDIA kernel (blocks, warps, stages) for one launch, fastest first, "
        "by simulation. Returns an order, not times. Variants of another `problem` (kernel, arguments) are "
        "ranked separately.",
        (
            CACHE, NAME, TARGET,
            text("grid", "CTAs, from the constants of each variant: 'cdiv(M,BLOCK_M)*cdiv(N,BLOCK_N)'."),
            Parameter(
                "arguments",
                {"type": "object", "description": _ARGUMENTS}, False,
            ),
            text("gpu", "Rank for this product: H200 …"), OFFSET,
        ),
        _rank,
    ),
    Tool(
        "explain",
        "Explain a code of a finding, a verdict, a fact or a term of these answers.",
        (text("word", "AI003, narrow-loads, pipelined, registers, ttgir …", required=True), OFFSET),
        _explain,
    ),
)  # fmt: skip
"""Tools that read caches and run no user code."""

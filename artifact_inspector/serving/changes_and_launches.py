"""Comparisons and simulated launches as items of an answer.

Apart from `items`: their imports take 0.3 s of processor time, a third of a new server's first list.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.comparison.corpus import Change, Corpus
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.files.cache import Artifact
from artifact_inspector.findings import find_launch_findings
from artifact_inspector.memory_checks.problems import MemoryReport
from artifact_inspector.report.corpus import describe_change
from artifact_inspector.report.json import (
    comparison,  # noqa: F401 - registers the encoding of the facts of a pair
    encode,
)
from artifact_inspector.report.json.prediction import prediction_document  # noqa: F401 - and of a launch
from artifact_inspector.report.prediction import describe_limits, describe_out_of_bounds, describe_time, memory_cost
from artifact_inspector.serving.items import Item, drop_empty, identity

MAX_PREDICTED_LINES = 24
"""Source lines of a simulated launch, the worst first."""


def prediction_items(artifact: Artifact, prediction: Prediction) -> Iterator[Item]:
    """A simulated launch: judgement, problems, counters, and lines with the worst first; without zeros."""
    time = prediction.time
    judgement = {} if time is None else {"microseconds": round(time.us, 3), "bound": time.bound, "gpu": time.gpu}
    sentences = [*describe_time(time), *describe_out_of_bounds(prediction)]
    yield {"part": "launch", **identity(artifact), "grid": prediction.grid, **judgement, "judgement": sentences}
    yield from ({"part": "problem", **encode(access)} for access in prediction.out_of_bounds)
    yield from ({"part": "finding", **drop_empty(encode(finding))} for finding in find_launch_findings(prediction))
    yield from _line_items(prediction)
    yield {"part": "counters", **drop_empty(encode(prediction.counters))}
    if limits := list(describe_limits(prediction)):
        yield {"part": "unknown", "limits": limits}
    access_lines = [line for line in prediction.by_line if any(memory_cost(line))]
    for line in sorted(access_lines, key=memory_cost, reverse=True)[:MAX_PREDICTED_LINES]:
        yield {"part": "instruction", **drop_empty(encode(line))}


def _line_items(prediction: Prediction) -> Iterator[Item]:
    """Source lines with stalls or memory accesses, the longest stall first, then the most excess traffic."""
    total = sum(stall.cycles for stall in prediction.stalls)
    reasons: dict[str, dict[str, float]] = {}
    for stall in prediction.stalls:
        share = round(stall.cycles / total, 3) if total else 0
        if share:
            reasons.setdefault(stall.line, {})[stall.reason] = share
    lines = {line.source: line for line in prediction.by_source if line.source is not None}
    costs = {
        source: (sum(reasons.get(source, {}).values()), *(memory_cost(lines[source]) if source in lines else ()))
        for source in {**reasons, **lines}
    }
    for source in sorted(filter(lambda source: any(costs[source]), costs), key=costs.__getitem__, reverse=True)[
        :MAX_PREDICTED_LINES
    ]:
        counts = drop_empty(encode(lines[source]), "stage", "line", "opcode") if source in lines else {}
        yield {"part": "line", "source": source, **drop_empty({"stalled": reasons.get(source)}), **counts}


def memory_items(report: MemoryReport) -> Iterator[Item]:
    """The memory errors of a launch, after its status."""
    document = encode(report)
    problems = document.pop("problems")
    yield {"part": "launch", **drop_empty(document, "coverage")}
    yield from ({"part": "problem", **drop_empty(problem)} for problem in problems)


def change_items(corpus: Corpus) -> Iterator[Item]:
    """The differences of two sides: every fact for two kernels, every changed kernel for caches."""
    changes = corpus.changes
    if len(changes) == 1:
        (change,) = changes
        yield _change_item(change)
        yield from ({"part": "fact", **encode(fact)} for fact in change.facts)
        return
    yield from (_change_item(change) for change in changes if change.facts or change.degree.value != "identical")


def _change_item(change: Change) -> Item:
    return {
        "part": "change", "left": identity(change.left.artifact), "right": identity(change.right.artifact),
        "degree": change.degree.value, "categories": list(change.categories),
        "changes": list(describe_change(change))[:8], "not_compared": list(change.notes),
    }  # fmt: skip

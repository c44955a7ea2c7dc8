"""Find the pass that made a fact of a cache entry, by compiling the entry again from its TTIR.

A pass is reported only if this compile ends with the same value as the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.errors import InspectorError
from artifact_inspector.files.cache import Artifact
from artifact_inspector.passes.dump_facts import Topic, topic_of
from artifact_inspector.passes.dumped_compile import NoticeCallback
from artifact_inspector.passes.subject import subject_of_entry, trace_passes
from artifact_inspector.passes.trace import FactChange, PassRun
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import STEPS, FactKey


class FactQuery(NamedTuple):
    """A fact whose pass is requested."""

    key: str
    """Key of the fact in comparisons: `loop1.verdict.ttgir`."""
    name: str
    """Key without the stage: `loop1.verdict`."""
    step: str | None
    """Stage of the fact; None for the last dump."""
    topic: Topic
    label: str


@dataclass(frozen=True, slots=True)
class PassAttribution:
    """The passes that made some facts of one entry."""

    passes_by_key: Mapping[str, tuple[PassRun, FactChange] | None]
    """Key → the last pass that changed the fact, up to its stage; None if no pass is known."""
    problem: str | None = None
    """Why the entry could not be compiled again."""


def select_earliest(facts: Iterable[tuple[str, str, str]]) -> tuple[FactQuery, ...]:
    """The facts that passes can be found for; of a fact with several stages only the earliest.

    Args:
        facts: key, category and label of each fact.
    """
    earliest_queries: dict[str, FactQuery] = {}
    for key, category, label in facts:
        topic = topic_of(category)
        if topic is None:
            continue
        query = FactQuery(key, FactKey(key).without_step, FactKey(key).step, topic, label)
        earlier_query = earliest_queries.get(query.name)
        if earlier_query is None or _stage_position(query) < _stage_position(earlier_query):
            earliest_queries[query.name] = query
    return tuple(earliest_queries.values())


def _stage_position(query: FactQuery) -> int:
    return len(STEPS) if query.step is None else STEPS.index(query.step)


def find_passes(
    artifact: Artifact,
    queries: Iterable[FactQuery],
    values: Mapping[str, Value],
    *,
    notice: NoticeCallback = lambda sentence: None,
) -> PassAttribution:
    """Find the passes that made some facts of an entry."""
    query_list = tuple(queries)
    try:
        pass_trace = trace_passes(subject_of_entry(artifact), {query.topic for query in query_list}, notice=notice)
    except InspectorError as error:
        return PassAttribution({}, error.message.splitlines()[0])
    passes: dict[str, tuple[PassRun, FactChange] | None] = {}
    for query in query_list:
        change = pass_trace.last_change({query.name}, query.step)
        passes[query.key] = change if change is not None and change[1].value_after == values.get(query.key) else None
    return PassAttribution(passes)

"""Find the pass that made a fact of a cache entry, by compiling the entry again from its TTIR.

A pass is reported only if this compile ends with the same value as the entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.errors import InspectorError
from artifact_inspector.files.cache import Artifact
from artifact_inspector.passes.compiled import Notice
from artifact_inspector.passes.observation import What, what_of
from artifact_inspector.passes.subject import of_entry, trace_passes
from artifact_inspector.passes.trace import Change, PassTrace, Step
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import STEPS, FactKey


class Asked(NamedTuple):
    """A fact whose pass is requested."""

    key: str
    """Key of the fact in comparisons: `loop1.verdict.ttgir`."""
    name: str
    """Key without the stage: `loop1.verdict`."""
    step: str | None
    """Stage of the fact; None for the last dump."""
    what: What
    label: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """The passes that made some facts of one entry."""

    made_by: Mapping[str, tuple[Step, Change] | None]
    """Key → the last pass that changed the fact, up to its stage; None if no pass is known."""
    why: str | None = None
    """Why the entry could not be compiled again."""


def earliest(facts: Iterable[tuple[str, str, str]]) -> tuple[Asked, ...]:
    """The facts that passes can be found for; of a fact with several stages only the earliest.

    Args:
        facts: key, category and label of each fact.
    """
    found: dict[str, Asked] = {}
    for key, category, label in facts:
        what = what_of(category)
        if what is None:
            continue
        asked = Asked(key, FactKey(key).without_step, FactKey(key).step, what, label)
        known = found.get(asked.name)
        if known is None or _place(asked) < _place(known):
            found[asked.name] = asked
    return tuple(found.values())


def _place(asked: Asked) -> int:
    return len(STEPS) if asked.step is None else STEPS.index(asked.step)


def attribute(
    artifact: Artifact,
    asked: Iterable[Asked],
    values: Mapping[str, Value],
    *,
    notice: Notice = lambda sentence: None,
) -> Attribution:
    """Find the passes that made some facts of an entry.

    Args:
        artifact: the entry.
        asked: the facts.
        values: the entry's values by key.
        notice: called with a sentence before a slow step.
    """
    wanted = tuple(asked)
    try:
        found = trace_passes(of_entry(artifact), {one.what for one in wanted}, notice=notice)
    except InspectorError as error:
        return Attribution({}, error.message.splitlines()[0])
    return Attribution({one.key: _maker(found, one, values.get(one.key)) for one in wanted})


def _maker(found: PassTrace, asked: Asked, value: Value) -> tuple[Step, Change] | None:
    made = found.last_change({asked.name}, asked.step)
    return made if made is not None and made[1].after == value else None

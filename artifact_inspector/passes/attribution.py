"""The pass behind a fact of a cache entry: the entry compiled again from its TTIR with its own Triton.

A pass is named only where the compile made here ends with what the entry says; else none is.
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
    """A fact whose pass is asked for."""

    key: str
    """As kernels are compared by it: `loop1.verdict.ttgir`."""
    name: str
    """The same at every stage: `loop1.verdict`."""
    step: str | None
    """The stage that it is told of; None for the last text."""
    what: What
    label: str


@dataclass(frozen=True, slots=True)
class Attribution:
    """The passes behind some facts of one entry."""

    made_by: Mapping[str, tuple[Step, Change] | None]
    """Key → the last pass that changed it, up to its stage; None where none is seen to have made it so."""
    why: str | None = None
    """Why the entry could not be compiled again."""


def earliest(facts: Iterable[tuple[str, str, str]]) -> tuple[Asked, ...]:
    """What passes can be asked for, of a fact of several stages the earliest alone.

    Args:
        facts: key, category and label of each.
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
    """Who made some facts of an entry what they are.

    Args:
        artifact: the entry.
        asked: the facts.
        values: what the entry says, by key.
        notice: called with a sentence before anything that takes long.
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

"""Describes what each compiler pass changed: the last change of each kind of fact first, then every pass."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from artifact_inspector.comparison.pair import Pair
from artifact_inspector.passes.attribution import Asked, Attribution
from artifact_inspector.passes.bisection import Bisection, Difference
from artifact_inspector.passes.observation import What
from artifact_inspector.passes.trace import Change, PassTrace, Step
from artifact_inspector.vocabulary.fact import Value

LONGEST = 110
"""Most characters of a fact's value; longer ones are cut in the middle (`--json` has all)."""
_PLACE = re.compile(
    r" ?loc\([^()]*(?:\([^()]*\)[^()]*)*\)|, !dbg !\d+|^#loc.*$|, debug-location !\d+.*$", re.M
)


def describe_passes(trace: PassTrace, *, every: bool = False) -> Iterator[str]:
    """The last change of each kind of fact, then the passes that changed a fact, then notes.

    Args:
        trace: one compilation.
        every: also list passes that changed only the text.
    """
    ran = len(trace.steps)
    texts = sum(step.changed_text is True for step in trace.steps)
    facts = [step for step in trace.steps if step.changes]
    version = f"Triton {trace.triton}" if trace.triton else "an unknown Triton"
    ran_words = f"{ran} passes: {texts} changed the IR, {len(facts)} changed a fact"
    yield f"{trace.kernel} · {trace.target} · {version} · {ran_words}"
    yield ""
    yield from _answer(trace)
    yield ""
    for step in trace.steps:
        if step.changes or (every and step.changed_text):
            yield _head(step)
            yield from _changes(step.changes)
    for note in trace.notes:
        yield f"note: {note}"


def _answer(trace: PassTrace) -> Iterator[str]:
    """The pass that last changed the order, the pipeline, and so on."""
    told = False
    for what in What:
        keys = {fact.key for fact in trace.final if fact.what is what and not fact.by_names}
        found = trace.last_change(keys)
        if found is None:
            continue
        step, change = found
        told = True
        yield f"{what.value}: last changed by {step.name} ({step.level}): {change.label} {_way(change)}"
    if not told:
        yield "No pass changed any of these facts."


def _head(step: Step) -> str:
    argument = f"  {step.argument}" if step.argument and step.argument != step.name else ""
    seconds = "" if step.seconds is None else f"  {1000 * step.seconds:.1f} ms"
    return f"{step.index:4}  {step.level.value:9} {step.name}{argument}{seconds}"


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes:
        unit = f" {change.unit}" if change.unit else ""
        yield f"      {change.what.value:9} {change.label}: {_way(change)}{unit}"


def _way(change: Change) -> str:
    return f"{_words(change.before)} → {_words(change.after)}"


def _words(value: Value) -> str:
    if value is None:
        return "none"
    words = ", ".join(value) if isinstance(value, tuple) else str(value)
    if not words:
        return "none"
    half = LONGEST // 2
    return words if len(words) <= LONGEST else f"{words[:half]} … {words[-half:]}"


def describe_bisection(found: Bisection) -> Iterator[str]:
    """The releases between which the kernel changed, then every tried release."""
    what = ", ".join(one.value for one in found.what)
    ends = f"Triton {found.tried[0].triton} to {found.tried[-1].triton}"
    if found.changed is None:
        yield f"{found.kernel} on {found.target}: no change of {what} from {ends}."
    else:
        older, newer = found.changed
        yield f"{found.kernel} on {found.target}: {what} changed between Triton {older} and {newer}."
        for difference in found.differences:
            yield from _difference(difference, older, newer)
    yield ""
    for tried in found.tried:
        if tried.message is not None:
            yield f"{tried.triton:8} compilation failed: {tried.message.splitlines()[0]}"
            continue
        values = [f"{name} {_words(value)}" for name, value in tried.values.items()]
        yield f"{tried.triton:8} {' · '.join(values)}"


def _difference(difference: Difference, older: str, newer: str) -> Iterator[str]:
    before, after = _words(difference.before), _words(difference.after)
    yield f"  {difference.stage} {difference.key}: {before} → {after}"
    for release, found in ((older, difference.older_pass), (newer, difference.newer_pass)):
        yield f"    {release}: {'no pass changed it' if found is None else _made(*found)}"


def _made(step: Step, change: Change) -> str:
    argument = "" if step.argument is None else f" ({step.argument})"
    return f"{step.name}{argument} at {step.level}: {_way(change)}"


def describe_attribution(asked: Sequence[Asked], sides: Sequence[tuple[str, Attribution]]) -> Iterator[str]:
    """The pass that last changed each fact on either side; facts that no pass changed are counted.

    Args:
        asked: the facts.
        sides: the label of each side and its passes.
    """
    yield "passes"
    silent = 0
    for fact in asked:
        told = [(label, side.made_by.get(fact.key)) for label, side in sides if side.why is None]
        if not any(made for _, made in told):
            silent += bool(told)
            continue
        yield f"  {fact.label}"
        for label, made in told:
            yield f"    {label}: {'no pass changed it' if made is None else _made(*made)}"
    if silent:
        yield f"  no pass changed the other {silent}"
    for label, side in sides:
        if side.why is not None:
            yield f"  {label}: could not be compiled again: {side.why}"


def name_makers(pair: Pair, asked: Sequence[Asked], sides: Sequence[tuple[str, Attribution]]) -> str:
    """The passes by which the verdicts of two kernels part, each with its side; empty where none is seen."""
    parted = next((one for one in pair.regions if one.parting is not None), None)
    if parted is None or parted.parting is None:
        return ""
    key = f"{parted.name}.verdict.{parted.parting.step}"
    made = [(label, side.made_by.get(key)) for label, side in sides if any(one.key == key for one in asked)]
    return ", ".join(f"{found[0].name} ({label})" for label, found in made if found is not None)


def describe_decision(label: str, asked: Asked, side: Attribution) -> str:
    """The pass that last changed one variant's verdict, in one line."""
    if side.why is not None:
        return f"  {label}: could not be compiled again: {side.why}"
    made = side.made_by.get(asked.key)
    said = "no pass changed it" if made is None else _made(*made)
    return f"  {label}: {said}"


def text_difference(step: Step, before: str, after: str, *, context: int = 3) -> Iterator[str]:
    """The text diff of a pass, without source locations, which are renumbered."""
    old, new = (_PLACE.sub("", text).splitlines() for text in (before, after))
    yield from difflib.unified_diff(
        old, new, f"before {step.name}", f"after {step.name}", n=context, lineterm=""
    )

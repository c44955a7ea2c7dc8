"""Describes what each compiler pass changed, and in which release a kernel got worse."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.comparison.release_facts import ReleaseFacts
from artifact_inspector.passes.attribution import FactQuery, PassAttribution
from artifact_inspector.passes.bisection import Bisection, ReleaseDifference
from artifact_inspector.passes.dump_facts import Topic
from artifact_inspector.passes.trace import FactChange, PassRun, PassTrace
from artifact_inspector.report.fact_groups import describe_groups
from artifact_inspector.report.phrases import join_words
from artifact_inspector.vocabulary.fact import Sign, Value

MAX_VALUE_LENGTH = 110
"""Most characters of a fact's value; longer ones are cut in the middle (`--json` has all)."""
_LOCATION = re.compile(r" ?loc\([^()]*(?:\([^()]*\)[^()]*)*\)|, !dbg !\d+|^#loc.*$|, debug-location !\d+.*$", re.M)


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
    yield from _describe_last_changes(trace)
    yield ""
    for step in trace.steps:
        if step.changes or (every and step.changed_text):
            yield _head(step)
            yield from _changes(step.changes)
    for note in trace.notes:
        yield f"note: {note}"


def _describe_last_changes(trace: PassTrace) -> Iterator[str]:
    has_change = False
    for aspect in Topic:
        keys = {fact.key for fact in trace.final if fact.topic is aspect and not fact.by_names}
        last_change = trace.last_change(keys)
        if last_change is None:
            continue
        step, change = last_change
        has_change = True
        yield f"{aspect.value}: last changed by {step.name} ({step.level}): {change.label} {_describe_values(change)}"
    if not has_change and not any(step.changes for step in trace.steps):
        yield "No pass changed any of these facts."


def _head(step: PassRun) -> str:
    argument = f"  {step.argument}" if step.argument and step.argument != step.name else ""
    seconds = "" if step.seconds is None else f"  {1000 * step.seconds:.1f} ms"
    return f"{step.index:4}  {step.level.value:9} {step.name}{argument}{seconds}"


def _changes(changes: Sequence[FactChange]) -> Iterator[str]:
    for change in changes:
        unit = f" {change.unit}" if change.unit else ""
        yield f"      {change.topic.value:9} {change.label}: {_describe_values(change)}{unit}"


def _describe_values(change: FactChange) -> str:
    return f"{_format_value(change.value_before)} → {_format_value(change.value_after)}"


def _format_value(value: Value) -> str:
    if value is None:
        return "none"
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    if not text:
        return "none"
    half = MAX_VALUE_LENGTH // 2
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:half]} … {text[-half:]}"


def describe_bisection(bisection: Bisection) -> Iterator[str]:
    """The releases between which the kernel changed, then every tried release."""
    aspects = ", ".join(aspect.value for aspect in bisection.topics)
    ends = f"Triton {bisection.releases[0].triton} to {bisection.releases[-1].triton}"
    if bisection.changed_between is None:
        yield f"{bisection.kernel} on {bisection.target}: no change of {aspects} from {ends}."
        yield "Other facts were not compared. Remove --what to compare all."
    else:
        older, newer = bisection.changed_between
        yield f"{bisection.kernel} on {bisection.target}: {aspects} changed between Triton {older} and {newer}."
        for difference in bisection.differences:
            yield from _difference(difference, older, newer)
    yield ""
    for trial in bisection.releases:
        if trial.message is not None:
            yield f"{trial.triton:8} compilation failed: {trial.message.splitlines()[0]}"
            continue
        values = [f"{name} {_format_value(value)}" for name, value in trial.values.items()]
        yield f"{trial.triton:8} {' · '.join(values)}"


def _difference(difference: ReleaseDifference, older: str, newer: str) -> Iterator[str]:
    old_text, new_text = _format_value(difference.older_value), _format_value(difference.newer_value)
    yield f"  {difference.stage} {difference.key}: {old_text} → {new_text}"
    for release, step_and_change in ((older, difference.older_pass), (newer, difference.newer_pass)):
        change = "no pass changed it" if step_and_change is None else describe_pass_change(*step_and_change)
        yield f"    {release}: {change}"


def describe_pass_change(step: PassRun, change: FactChange) -> str:
    """The pass, its level, and the values before and after."""
    argument = "" if step.argument is None else f" ({step.argument})"
    return f"{step.name}{argument} at {step.level}: {_describe_values(change)}"


def describe_attribution(facts: Sequence[FactQuery], sides: Sequence[tuple[str, PassAttribution]]) -> Iterator[str]:
    """The pass that last changed each fact on either side; facts that no pass changed are counted.

    Args:
        sides: the label of each side and its passes.
    """
    yield "passes"
    unattributed = 0
    for fact in facts:
        changes = [(label, side.passes_by_key.get(fact.key)) for label, side in sides if side.problem is None]
        if not any(step_and_change for _, step_and_change in changes):
            unattributed += bool(changes)
            continue
        yield f"  {fact.label}"
        for label, step_and_change in changes:
            change = "no pass changed it" if step_and_change is None else describe_pass_change(*step_and_change)
            yield f"    {label}: {change}"
    if unattributed:
        is_all = unattributed == len(facts)
        yield f"  no pass changed {('it' if unattributed == 1 else 'them') if is_all else f'the other {unattributed}'}"
    for label, side in sides:
        if side.problem is not None:
            yield f"  {label}: could not be compiled again: {side.problem}"


def name_passes(pair: Comparison, facts: Sequence[FactQuery], sides: Sequence[tuple[str, PassAttribution]]) -> str:
    """The passes by which the verdicts of two kernels part, each with its side; empty where none is seen."""
    region = next((asked_fact for asked_fact in pair.regions if asked_fact.first_divergence is not None), None)
    if region is None or region.first_divergence is None:
        return ""
    key = f"{region.name}.verdict.{region.first_divergence.step}"
    is_requested = any(fact.key == key for fact in facts)
    passes = [(label, side.passes_by_key.get(key)) for label, side in sides if is_requested]
    return ", ".join(f"{step_and_change[0].name} ({label})" for label, step_and_change in passes if step_and_change)


def describe_decision(label: str, fact: FactQuery, side: PassAttribution) -> str:
    """The pass that last changed one variant's verdict, in one line."""
    if side.problem is not None:
        return f"  {label}: could not be compiled again: {side.problem}"
    step_and_change = side.passes_by_key.get(fact.key)
    text = "no pass changed it" if step_and_change is None else describe_pass_change(*step_and_change)
    return f"  {label}: {text}"


def text_difference(step: PassRun, old_text: str, new_text: str) -> Iterator[str]:
    """The text diff of a pass, without source locations, which are renumbered."""
    old, new = (_LOCATION.sub("", text).splitlines() for text in (old_text, new_text))
    yield from difflib.unified_diff(old, new, f"before {step.name}", f"after {step.name}", lineterm="")


MAX_ATTRIBUTED = 5
"""Most facts whose passes are listed."""
MAX_EXCEPTIONS = 4


def describe_release_facts(bisection: Bisection, facts: ReleaseFacts) -> Iterator[str]:
    """The decisive fact between two releases, all facts by direction, the passes that made them."""
    subject = f"{bisection.kernel} on {bisection.target}"
    compiled = [trial for trial in bisection.releases if trial.message is None]
    if bisection.changed_between is None:
        yield f"{subject}: no fact differs from Triton {compiled[0].triton} to {compiled[-1].triton}."
    else:
        older, newer = bisection.changed_between
        differing = facts.facts(older, newer)
        headline = facts.headline(older, newer)
        if headline is None:
            listed = ", ".join(dict.fromkeys(fact.title for fact in differing[:MAX_EXCEPTIONS]))
            omitted = f" and {len(differing) - MAX_EXCEPTIONS} more" if len(differing) > MAX_EXCEPTIONS else ""
            if (compiled[0].triton, compiled[-1].triton) != (older, newer):
                subject += f", Triton {compiled[0].triton} to {compiled[-1].triton}"
            yield f"{subject}: no fact differs between Triton {older} and {newer} except {listed}{omitted}."
            titles = {sign: [fact.title for fact in differing if fact.direction is sign] for sign in Sign}
            signed = [sign for sign in (Sign.WORSE, Sign.BETTER) if titles[sign]]
            named = [f"{sign.capitalize()}, but not decisive: {join_words(titles[sign])}." for sign in signed]
            yield " ".join(named) or "None of these is better or worse by itself."
        else:
            yield f"{subject}, Triton {older} to {newer}: {headline.sentence}"
        for sign, texts in describe_groups(differing):
            yield sign.capitalize()
            yield from (f"  {text}" for text in texts)
        yield from _describe_passes(bisection.differences, older, newer)
    yield ""
    for trial in bisection.releases:
        result = "compiled" if trial.message is None else f"compilation failed: {trial.message.splitlines()[0]}"
        yield f"{trial.triton:8} {result}"


def _describe_passes(differences: tuple[ReleaseDifference, ...], older: str, newer: str) -> Iterator[str]:
    attributed = [
        difference
        for difference in differences
        if difference.direction is not Sign.NEUTRAL and (difference.older_pass or difference.newer_pass)
    ]
    if attributed:
        yield "Passes"
    for difference in attributed[:MAX_ATTRIBUTED]:
        yield f"  {difference.key}"
        for release, step_and_change in ((older, difference.older_pass), (newer, difference.newer_pass)):
            text = "no pass changed it" if step_and_change is None else describe_pass_change(*step_and_change)
            yield f"    {release}: {text}"

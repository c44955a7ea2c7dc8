"""Describes the release in which a kernel got worse: the decisive fact, all facts by direction, the passes."""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.comparison.release_facts import ReleaseFacts
from artifact_inspector.passes.bisection import Bisection, ReleaseDifference
from artifact_inspector.report.fact_groups import describe_groups
from artifact_inspector.report.passes import describe_pass_change
from artifact_inspector.vocabulary.fact import Sign

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
            more = f" and {len(differing) - MAX_EXCEPTIONS} more" if len(differing) > MAX_EXCEPTIONS else ""
            yield f"{subject}: no fact differs between Triton {older} and {newer} except {listed}{more}."
            yield "None of these is better or worse by itself."
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

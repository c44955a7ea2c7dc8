"""All facts of releases, for `bisect`: the decisive one, the differences, and what is printed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from saved import saved

from artifact_inspector.comparison.release_facts import ReleaseFacts
from artifact_inspector.files.cache import MemoryFile
from artifact_inspector.files.reader import read_file
from artifact_inspector.passes.bisection import Bisection, ReleaseDifference, ReleaseResult
from artifact_inspector.report.passes import describe_release_facts
from artifact_inspector.vocabulary.fact import Sign


@pytest.fixture
def facts() -> ReleaseFacts:
    """Three releases: the last one has another barrier count, the second is equal to the first."""
    found = ReleaseFacts()
    for release, kernel in (
        ("1", "3.6.0/sm_80/helper_twice"),
        ("2", "3.6.0/sm_80/helper_twice"),
        ("3", "3.9.0/sm_80/helper_twice"),
    ):
        values = found.read_values(release, saved(kernel).artifact)
        assert values["count.barrier"] == (5 if release == "3" else 7)
    return found


def test_the_decisive_fact_is_that_of_diff(facts: ReleaseFacts) -> None:
    assert facts.find_decisive_keys("1", "3") == ["count.barrier"]
    assert facts.find_decisive_keys("1", "2") == []
    assert facts.facts("1", "2") == ()
    difference = next(iter(facts.list_differences("1", "3")))
    assert (difference.key, difference.older_value, difference.newer_value) == ("count.barrier", 7, 5)
    assert difference.direction is Sign.BETTER


def describe(
    facts: ReleaseFacts, older: str, newer: str, *differences: ReleaseDifference, changed: bool = True
) -> list[str]:
    releases = tuple(ReleaseResult(release, {}, None) for release in (older, newer))
    bisection = Bisection("k", "sm_80", (), releases, (older, newer) if changed else None, differences)
    return list(describe_release_facts(bisection, facts))


def test_equal_releases_have_no_fact_that_differs(facts: ReleaseFacts) -> None:
    assert describe(facts, "1", "2", changed=False)[0] == "k on sm_80: no fact differs from Triton 1 to 2."


def test_the_first_line_is_the_cause(facts: ReleaseFacts) -> None:
    lines = describe(facts, "1", "3")
    assert lines[0].startswith("k on sm_80, Triton 1 to 3: Better: fewer barriers (7 → 5)")
    assert lines[1] == "Better"


def test_signed_facts_that_do_not_decide_are_named_with_their_sign() -> None:
    facts = ReleaseFacts()
    artifact = saved("3.6.0/sm_80/layer_norm").artifact
    text = read_file(artifact, "ptx").replace(b"ret;", b"mov.u32 %r1, %r1;\n\tret;")
    longer = replace(artifact, files={**artifact.files, "ptx": MemoryFile("k.ptx", text)})
    for release, entry in (("1", artifact), ("2", longer), ("3", longer)):
        facts.read_values(release, entry)
    bisection = Bisection("k", "sm_80", (), tuple(ReleaseResult(x, {}, None) for x in "123"), ("1", "2"), ())
    lines = list(describe_release_facts(bisection, facts))
    assert lines[0].startswith("k on sm_80, Triton 1 to 3: no fact differs between Triton 1 and 2 except ")
    assert lines[1:3] == ["Worse, but not decisive: instructions at assembly.", "Worse"]


def test_neutral_facts_are_exceptions_and_never_the_same() -> None:
    facts = ReleaseFacts()
    facts.read_values("1", saved("3.6.0/sm_80/layer_norm").artifact)
    facts.read_values("2", saved("3.6.0/sm_75/layer_norm").artifact)
    lines = describe(facts, "1", "2")
    assert lines[0].startswith("k on sm_80: no fact differs between Triton 1 and 2 except ")
    assert not any("same" in line for line in lines)

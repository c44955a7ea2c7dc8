"""The words of the model: what code compares is what users read."""

import json
from enum import Enum

import pytest

from artifact_inspector import model
from artifact_inspector.model import Arch, OrderVerdict, Severity, StringEnum, TritonVersion

WORDS = [value for value in vars(model).values() if isinstance(value, type) and issubclass(value, StringEnum)]
MEMBERS = [member for words in WORDS for member in words]


@pytest.mark.parametrize("word", MEMBERS, ids=repr)
def test_a_word_is_printed_written_and_compared_as_its_text(word: StringEnum) -> None:
    assert (str(word), f"{word}", json.loads(json.dumps(word))) == (word.value,) * 3
    assert word == word.value
    assert {word.value: 1}[word] == 1
    assert type(word)(word.value) is word


def test_there_are_words_for_verdicts_kinds_and_bases() -> None:
    assert {words.__name__ for words in WORDS} >= {"OrderVerdict", "RegionKind", "Basis", "Severity", "PipelineKind"}


def test_only_verdicts_about_several_rounds_speak_of_their_order() -> None:
    assert {v for v in OrderVerdict if v.is_order_verdict} == {
        "interleaved",
        "clustered",
        "staggered",
        "grouped",
        "mixed",
    }
    assert {v for v in OrderVerdict if v.runs_ahead} == {"pipelined", "partly pipelined", "warp-specialised"}


def test_words_of_different_lists_stay_apart_by_their_type() -> None:
    assert not isinstance(Severity.WARNING, OrderVerdict)
    assert issubclass(OrderVerdict, Enum)


@pytest.mark.parametrize(
    ("written", "arch", "number", "version"),
    [
        ("sm_90a", "sm_90", 90, (9, 0)),
        ("cuda:80", "sm_80", 80, (8, 0)),
        ("103", "sm_103", 103, (10, 3)),
        ("hip:gfx90a:sramecc+:xnack-", "gfx90a", 0x90A, (9, 0)),
        ("GFX942", "gfx942", 0x942, (9, 4)),
        ("gfx1100", "gfx1100", 0x1100, (11, 0)),
        ("gfx9-4-generic", "gfx9-4-generic", 0x940, (9, 4)),
    ],
)
def test_an_architecture_is_read_in_every_form_and_tells_its_numbers(
    written: str, arch: str, number: int, version: tuple[int, int]
) -> None:
    found = Arch.parse(written)
    assert found == arch
    assert (found.number, found.version, found.generation) == (number, version, version[0])
    assert (found.vendor, found.backend) == (("NVIDIA", "cuda") if arch.startswith("sm_") else ("AMD", "hip"))


@pytest.mark.parametrize("text", ["", "sm_", "gfx", "gfx9-generic-x", "A100", "sm_80; rm", "²0"])
def test_another_text_is_no_architecture(text: str) -> None:
    assert Arch.parse(text) is None


def test_a_version_is_compared_by_its_numbers_and_printed_as_written() -> None:
    version = TritonVersion("3.10.0+git1")
    assert (str(version), version.release, version.since((3, 2))) == ("3.10.0+git1", (3, 10), True)
    assert TritonVersion("2.1.0").since((3, 0)) is False
    assert TritonVersion("main").since((3, 0)) is None


def test_a_version_that_two_releases_fit_tells_only_what_both_tell() -> None:
    either = TritonVersion("3.0/3.1")
    assert either.releases == ((3, 0), (3, 1))
    assert (either.since((3, 0)), either.since((3, 1)), either.since((3, 2))) == (True, None, False)
    assert either.may_match("3.1.0")
    assert not either.may_match("3.10.0")


def test_a_version_of_a_release_is_one_of_it_and_not_the_other_way_round() -> None:
    assert TritonVersion("3.2.0").matches("3.2")
    assert not TritonVersion("3.2").matches("3.2.0")
    assert TritonVersion("3.2").may_match("3.2.0")

"""The words of the model: what code compares is what users read."""

import json
from enum import Enum

import pytest

from artifact_inspector import model
from artifact_inspector.model import Severity, Verdict, Word

WORDS = [value for value in vars(model).values() if isinstance(value, type) and issubclass(value, Word)]
MEMBERS = [member for words in WORDS for member in words]


@pytest.mark.parametrize("word", MEMBERS, ids=repr)
def test_a_word_is_printed_written_and_compared_as_its_text(word: Word) -> None:
    assert (str(word), f"{word}", json.loads(json.dumps(word))) == (word.value,) * 3
    assert word == word.value
    assert {word.value: 1}[word] == 1
    assert type(word)(word.value) is word


def test_there_are_words_for_verdicts_kinds_and_bases() -> None:
    assert {words.__name__ for words in WORDS} >= {
        "Verdict",
        "RegionKind",
        "Basis",
        "Severity",
        "PipelineKind",
    }


def test_only_verdicts_about_several_rounds_speak_of_their_order() -> None:
    assert {v for v in Verdict if v.is_of_order} == {
        "interleaved",
        "clustered",
        "staggered",
        "grouped",
        "mixed",
    }
    assert {v for v in Verdict if v.runs_ahead} == {"pipelined", "partly pipelined", "warp-specialised"}


def test_words_of_different_lists_stay_apart_by_their_type() -> None:
    assert not isinstance(Severity.WARNING, Verdict)
    assert issubclass(Verdict, Enum)

"""The beginning of every other campaign, in every run of the tests, and what it is held against."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.fuzz.checks import SECONDS, EscapeError, within
from tests.fuzz.poison import WORDS
from tests.fuzz.promises import check_command, check_document, check_plain
from tests.fuzz.surfaces import SURFACES, make
from tests.fuzz.turns import take_turns

FIRST = 8
"""Cases of each."""


SLOW = ("watches", "bisections", "launches", "bombs")


@pytest.mark.parametrize(
    "surface", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in SURFACES]
)
def test_the_first_cases_break_no_promise(surface: str, tmp_path: Path) -> None:
    for number in range(FIRST):
        place = tmp_path / str(number)
        place.mkdir()
        with within(SECONDS):
            make(surface, number, place)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a\x1b[2J", "text"),
        ("\u202ea", "json"),
        ("::error::a", "text"),
        ("a ##vso[task]", "markdown"),
        ('{"a": NaN}', "json"),
        ("<svg><script src='x'/></svg>", "svg"),
        ('<svg onload="pwn()"/>', "svg"),
        ("<p><img src=x></p>", "html"),
        ("<script>pwn()</script>", "html"),
        ("| a |\n|---|\n| <img src=x onerror=pwn()> |", "markdown"),
        ("[a](javascript:pwn())", "html markdown"),
    ],
)
def test_what_breaks_a_promise_is_seen(text: str, kind: str) -> None:
    if kind == "html markdown":  # CommonMark's own renderer makes no such link
        check_document(text, "markdown")
        return
    with pytest.raises((EscapeError, ValueError)):
        check_document(text, kind)


def test_what_keeps_them_is_not() -> None:
    check_plain("a :: b\n\\::error::\n")
    check_document('<p title="&lt;img&gt;">a</p><script>run()</script>', "html")
    check_document("`<img src=x onerror=pwn()>`", "markdown")


def test_turns_go_on_where_they_were_stopped(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    assert take_turns(state, 2, 60, "completion") == 0
    assert take_turns(state, 4, 60, "completion") == 0
    told = json.loads(state.read_text(encoding="utf-8"))
    assert told == {"completion": {"tried": 4, "ended": {"exit 0": 4}, "found": []}}


def test_words_of_malice_are_not_alike() -> None:
    assert len(set(WORDS)) == len(WORDS)
    assert random.Random("names 1").random() == random.Random("names 1").random()


def test_a_file_elsewhere_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    cache = str(Path(__file__).parents[2] / "fixtures" / "3.6.0" / "sm_80" / "copy")
    with pytest.raises(EscapeError, match=r"wrote to .*\.writing-"):
        check_command(["report", cache, "-o", str(page), "--no-index"], tmp_path / "away")

"""The beginning of every other campaign, in every run of the tests, and what it is held against."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzz.checks import SECONDS, EscapeError, within
from tests.fuzz.corpus import FIXTURES
from tests.fuzz.documents import damaged_document
from tests.fuzz.poison import WORDS
from tests.fuzz.promises import check_command, check_document, check_plain
from tests.fuzz.surfaces import SURFACES, make
from tests.fuzz.turns import take_turns

FIRST = 4
"""Cases of each."""


SLOW = ("watches", "bisections", "launches", "bombs")


@pytest.mark.long
@pytest.mark.parametrize(
    "surface", [pytest.param(name, marks=pytest.mark.exhaustive) if name in SLOW else name for name in SURFACES]
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


@pytest.mark.long
def test_turns_go_on_where_they_were_stopped(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    assert take_turns(state, 2, 60, "completion") == 0
    assert take_turns(state, 4, 60, "completion") == 0
    told = json.loads(state.read_text(encoding="utf-8"))
    assert told == {"completion": {"tried": 4, "ended": {"exit 0": 4}, "found": []}}


@pytest.mark.exhaustive
def test_most_calls_of_agents_are_answered(tmp_path: Path) -> None:
    """A campaign that is refused tries the refusal only: over half of the calls have to reach their tool."""
    ended: Counter[str] = Counter()
    for number in range(200):
        place = tmp_path / str(number)
        place.mkdir()
        with within(SECONDS):
            ended[make("agents", number, place)] += 1
        shutil.rmtree(place)
    assert ended["answered"] > 100, ended


@pytest.mark.exhaustive
def test_a_server_survives_lines_of_malice_on_its_wire(tmp_path: Path) -> None:
    """The process itself: damaged requests between whole ones; every whole request is answered, in words."""
    chance = random.Random(5)
    cache = FIXTURES / "3.6.0" / "sm_80" / "masked_add"
    call = {"name": "findings", "arguments": {"cache": str(cache), "kernel": "masked_add"}}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    lines, asked = [json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})], {0}
    lines.append(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    for number in range(1, 201):
        whole = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call})
        if number % 2:
            asked.add(number)
            lines.append(whole)
        else:
            broken = damaged_document({**json.loads(whole), "id": f"damaged {number}"}, chance).replace("\n", " ")
            lines.append(
                chance.choice(
                    (broken, broken[: len(broken) // 2], "", "[" * 5000, chance.choice(WORDS).replace("\n", " "))
                )
            )
    server = [sys.executable, "-m", "artifact_inspector", "mcp", "--root", str(FIXTURES)]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        writer = threading.Thread(
            target=lambda: (
                process.stdin.write("".join(f"{x}\n" for x in lines).encode("utf-8", "replace")),
                process.stdin.flush(),
            )
        )
        writer.start()
        ends = threading.Timer(240, process.kill)
        ends.start()
        answered: set[object] = set()
        for line in process.stdout:
            answer = json.loads(line)
            if answer.get("id") in asked and "result" in answer:  # a damaged request may have the id of a whole one
                answered.add(answer["id"])
                assert not answer["id"] or "AI006" in answer["result"]["content"][0]["text"]
            check_plain(line.decode(), orders=True)
            if answered >= asked:
                break
        ends.cancel()
        process.kill()
        writer.join(60)
        assert b"Traceback" not in process.stderr.read()
    assert answered >= asked


def test_words_of_malice_are_not_alike() -> None:
    assert len(set(WORDS)) == len(WORDS)
    assert random.Random("names 1").random() == random.Random("names 1").random()


def test_a_file_elsewhere_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    cache = str(Path(__file__).parents[2] / "fixtures" / "3.6.0" / "sm_80" / "copy")
    with pytest.raises(EscapeError, match=r"wrote to .*\.writing-"):
        check_command(["report", cache, "-o", str(page), "--no-index"], tmp_path / "away")

"""Every promise of SECURITY.md names a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_a_file_of_tests() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    _, promises, _ = re.split(r"^## (?:Promises|Not promised)$", text, flags=re.M)
    table = re.search(r"(?:^\|.*\n)+", promises, flags=re.M)
    assert table is not None
    rows = [line.split("|")[1:3] for line in table[0].splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for promise, test in rows:
        (file,) = re.findall(r"`(tests/[\w/]+\.py)`", test)
        assert "def test_" in (ROOT / file).read_text(encoding="utf-8"), promise


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / "SECURITY.md").read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target

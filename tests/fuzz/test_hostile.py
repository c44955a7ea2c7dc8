"""Input that somebody thought of: each case to one command in turn; `python -m tests.fuzz.hostile` gives it to all."""

from __future__ import annotations

import pytest

from tests.fuzz.hostile import BINARIES, CASES, COMMANDS, LAUNCHES, METADATA, ON_PAPER, TEXTS, TREES, run

KINDS = {"texts": TEXTS, "metadata": METADATA, "binaries": BINARIES, "trees": TREES, "launches": LAUNCHES}
SLOW = {"100,000 empty directories", "inline assembly of a megabyte", "20,000 launches", "a name of a megabyte in PTX",
        "100,000 arguments", "a grid of 2^22", "a fused place of 100,000", "metadata of AMD in 5,000 levels"}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long) if kind in ("launches", "trees") else kind for kind in KINDS]
)
def test_nothing_of_malice_breaks_a_promise(kind: str) -> None:
    found: list[str] = []
    commands = ON_PAPER if kind == "launches" else COMMANDS
    for number, name in enumerate(KINDS[kind]):
        if name not in SLOW:
            run(name, [commands[number % len(commands)]], found.append)
    assert not found


def test_no_two_cases_are_alike() -> None:
    assert len(set(CASES)) == len(CASES) == sum(map(len, KINDS.values()))

"""The beginning of the campaign, in every run of the tests; docs/lab/reliability.md has the rest."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from artifact_inspector.model import Stage
from tests.fuzz import campaign as running
from tests.fuzz.campaign import Campaign, file_mutant, kernel_mutant
from tests.fuzz.checks import EscapeError, check_text, within


@pytest.mark.long
def test_the_first_mutants_bring_about_nothing_that_no_file_may() -> None:
    campaign = Campaign()
    campaign.run(files=600, whole=40, seconds=120, tell=lambda _: None)
    assert campaign.found == []
    assert (campaign.files, campaign.kernels, campaign.cut_off) == (600, 40, 20)
    assert campaign.changed > 0
    assert 0 < campaign.refused < 300


def test_a_number_makes_the_same_mutant_again(tmp_path: Path) -> None:
    assert file_mutant(7) == file_mutant(7) != file_mutant(8)
    made = []
    for place in (tmp_path / "a", tmp_path / "b"):
        place.mkdir()
        whole, cut = kernel_mutant(12, place)
        made.append((whole, cut, {p.name: p.read_bytes() for p in place.rglob("*") if p.is_file()}))
    assert made[0] == made[1]


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    Campaign().run(files=6, whole=2, seconds=60, path=state)
    again = Campaign.read(state)
    assert (again.files, again.kernels) == (6, 2)
    again.run(files=9, whole=2, seconds=60, path=state)
    assert Campaign.read(state).files == 9


def test_what_escapes_is_kept_with_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(text: str, stage: Stage) -> bool:
        raise ZeroDivisionError(f"{stage.value} of {len(text)}")

    monkeypatch.setattr(running, "check_text", fault)
    campaign = Campaign()
    campaign.run(files=2, whole=0, seconds=60, path=tmp_path / "s", tell=lambda _: None)
    assert [found.partition(":")[0] for found in campaign.found] == ["file 0", "file 1"]
    assert "ZeroDivisionError at test_campaign.py:" in campaign.found[0]
    assert Campaign.read(tmp_path / "s").found == campaign.found


@pytest.mark.long
def test_what_takes_too_long_escapes() -> None:
    def wait() -> None:
        while time.process_time():
            pass

    with pytest.raises(EscapeError, match="more than 1 s"), within(1):
        wait()


def test_a_refusal_is_no_escape() -> None:
    assert not check_text("nothing", Stage.PTX)

"""A ranking of what was measured on an H200: what its order costs."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from artifact_inspector import cli

sys.path.insert(0, str(Path(__file__).parent))
from regret import rank_folder, regret_of

ARCHIVE = Path(__file__).parent / "measured" / "ranking.tar.xz"
LATER = ARCHIVE.with_name("ranking-later.tar.xz")
KERNEL = "swiglu"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One kernel in 16 configurations: its binaries, launches and times."""
    made = tmp_path_factory.mktemp("ranking")
    with tarfile.open(ARCHIVE) as archive:
        rows: list[dict[str, object]] = []
        for member in archive:
            parts = member.name.split("/")
            if parts[-1] == f"{KERNEL}.json":
                rows = json.load(archive.extractfile(member))  # type: ignore[arg-type]
            elif parts[1:2] == ["cache"] and parts[-1].startswith(KERNEL) and not parts[-1].endswith("llir"):
                archive.extract(member, made, filter="data")
    launched = [row for row in rows if "launch" in row]
    launches = [{**row["launch"], "hash": row["launch"]["directory"]} for row in launched]  # type: ignore[dict-item,index]
    times = [{"hash": row["launch"]["directory"], "milliseconds": row["ms"][0]} for row in launched]  # type: ignore[index]
    (made / "ranking" / "launches.json").write_text(json.dumps({"launches": launches}))
    (made / "ranking" / "times.json").write_text(json.dumps(times))
    return made / "ranking"


def words(folder: Path) -> list[str]:
    return ["rank", str(folder / "cache"), "--launch", str(folder / "launches.json"), "--gpu", "H200"]


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    """The launches in the order that the command prints."""
    found: list[dict[str, Any]] = json.loads(CliRunner().invoke(cli.app, [*words(folder), "--json"]).output)["rank"]
    return found


@pytest.mark.long
def test_the_best_of_the_first_five_is_the_best_there_is(folder: Path, rows: list[dict[str, Any]]) -> None:
    times = json.loads((folder / "times.json").read_text())
    cost = regret_of([times[row["launch"]]["milliseconds"] for row in rows])
    assert len(rows) == 16
    assert cost.five <= 1.02
    assert cost.first <= 1.05
    assert cost.correlation > 0.9


@pytest.mark.long
def test_every_term_is_told_and_none_is_larger_than_the_score(rows: list[dict[str, Any]]) -> None:
    assert [row["score"] for row in rows] == sorted(row["score"] for row in rows)
    assert {row["launch"] for row in rows} == set(range(16))
    for row in rows:
        assert row["fits"] is True
        assert row["bottleneck"] == max(row["terms"], key=row["terms"].__getitem__)
        assert row["score"] >= max(cycles for name, cycles in row["terms"].items() if name != "path") - 1


@pytest.mark.long
def test_without_a_disassembler_it_says_what_it_takes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asking in ("disassembly", "objdump"):
        monkeypatch.setattr(f"artifact_inspector.files.{asking}.find_disassembler", lambda *_: None)
    result = CliRunner().invoke(cli.app, words(folder))
    assert result.exit_code == 3
    assert "nvdisasm" in result.output + (result.stderr or "")


def test_a_regret_is_measured_against_the_best() -> None:
    cost = regret_of([1.1, 1.0, 4.0, 2.0, 3.0, 5.0])
    assert cost.first == pytest.approx(1.1)
    assert cost.five == 1.0
    assert regret_of([1.0, 2.0, 3.0]).correlation == 1.0
    assert regret_of([3.0, 2.0, 1.0]).correlation == -1.0


@pytest.mark.parametrize(
    "kernel", [pytest.param(name, marks=pytest.mark.exhaustive) for name in ("sort_down", "conv_dgrad")]
)
def test_the_order_of_kernels_ranked_blind_stays_as_good(kernel: str, tmp_path: Path) -> None:
    with tarfile.open(LATER) as archive:
        rows = json.load(archive.extractfile(f"ranking/{kernel}.json"))  # type: ignore[arg-type]
        places = {row["launch"]["directory"] for row in rows}
        kept = [member for member in archive.getmembers() if places & {*member.name.split("/")}]
        archive.extractall(tmp_path, kept, filter="data")
    launches = [{**row["launch"], "hash": row["launch"]["directory"]} for row in rows]
    times = [{"hash": row["launch"]["directory"], "milliseconds": row["ms"][0]} for row in rows]
    (tmp_path / "ranking" / "launches.json").write_text(json.dumps({"launches": launches}))
    (tmp_path / "ranking" / "times.json").write_text(json.dumps(times))
    cost = regret_of(rank_folder(tmp_path / "ranking")[1])
    assert cost.five <= 1.002
    assert cost.first <= 1.02
    assert cost.correlation > 0.9

"""Reports as a user sees them. A golden's second half is what its report must not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from artifact_inspector.cli import app

FIXTURES = Path(__file__).parents[2] / "fixtures"
pytestmark = pytest.mark.usefixtures("recalled")
GOLDENS = Path(__file__).parent / "reports"
MUST_NOT = "==== must not appear\n"

# golden → (columns, command in the directory of fixtures)
REPORTS = {
    "cache": (100, "3.3.1"),
    "cache_narrow": (60, "3.3.1 --target sm_80"),
    "pipelined_matmul": (100, "3.6.0/sm_80/matmul_grouped matmul --region loop@81"),
    "reordered_gemv": (100, "3.2.0/gfx942/gemv_splitk gemv --region straight"),
    "flash_attention": (80, "3.6.0/sm_80/flash_attention flash --region loop@47"),
    "scalar_dot": (80, "3.6.0/sm_75/matmul_square matmul --region loop@41"),
    "whole_kernel": (140, "3.9.0/sm_80/matmul_grouped matmul --full"),
    "story": (80, "3.6.0/sm_80/flash_attention flash"),
    "spilled": (100, "3.6.0/gfx942/register_spill spill"),
    "findings": (100, "findings 3.3.1"),
    "listing": (60, "3.6.0/sm_80/matmul_grouped matmul --ir --stage ttir"),
    "two_gpus": (120, "diff 3.2.0 --left sm_75 --right gfx90a --changes"),
    "two_versions": (120, "diff 3.2.0 3.3.1"),
    "matrix": (100, "matrix 3.6.0 matmul_kernel"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_the_report_is_the_golden_one_and_holds_nothing_forbidden(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns, command = REPORTS[name]
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(FIXTURES)
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == (1 if command.startswith("diff ") else 0), result.output
    path = GOLDENS / f"{name}.txt"
    expected, marker, forbidden = path.read_text(encoding="utf-8").partition(MUST_NOT)
    if request.config.getoption("--update-golden", default=False):
        path.write_text(result.output + marker + forbidden, encoding="utf-8")
    else:
        assert result.output == expected
    assert forbidden.splitlines()
    assert [line for line in forbidden.splitlines() if line in result.output] == []


def test_goldens_stay_readable() -> None:
    for path in GOLDENS.glob("*.txt"):
        assert path.stem in REPORTS
        report, _, _ = path.read_text(encoding="utf-8").partition(MUST_NOT)
        assert len(report.splitlines()) <= 80, path.name

"""The pictures on the pages are those that the commands below them draw now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from artifact_inspector.cli import app

ROOT = Path(__file__).parents[2]
DRAWN = re.compile(r"^!\[[^]]*\]\(([^)]+\.svg)\)\n\n`inspect-kernel ([^`]+)`$", re.M)
PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = {
    (page.parent / place).resolve(): command
    for page in PAGES
    for place, command in DRAWN.findall(page.read_text(encoding="utf-8"))
}


@pytest.mark.long
@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.stem)
def test_a_picture_is_what_its_command_draws(
    path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    drawn = CliRunner().invoke(app, SHOWN[path].split())
    assert drawn.exit_code in (0, 1), drawn.output
    if request.config.getoption("--update-golden", default=False):
        path.write_text(drawn.stdout, encoding="utf-8")
    assert drawn.stdout == path.read_text(encoding="utf-8")


def test_every_picture_has_its_command_and_the_readme_one() -> None:
    assert set(SHOWN) == set((ROOT / "docs" / "pictures").glob("*.svg"))
    for page in ("README.md", "README.zh-CN.md"):
        assert len(DRAWN.findall((ROOT / page).read_text(encoding="utf-8"))) == 1

"""The pages make a site: MkDocs builds it without a warning, and every page can be reached."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from saved import ROOT

NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"(\S+\.md)$", NAVIGATION, re.M)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(pages), "mkdocs.yml lists each page once"


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the docs extra is not installed")
    site = tmp_path / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "Where to begin" in home
    assert re.findall(r'(?:src|href)="https?://(?!squidfunk)[^"]*"', home) == []
    assert (site / "schema" / "v2" / "cache.schema.json").exists()

"""Commands over a damaged kernel, in this process: each ends in words, with an exit code of the four."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.fuzz.promises import check_command, check_written

__all__ = ["VIEWS", "check_view", "filled"]

VIEWS: Mapping[str, tuple[str, ...]] = {
    "document": ("inspect", "CACHE", "--json"),
    "rows": ("inspect", "CACHE"),
    "story": ("inspect", "CACHE", "HASH"),
    "listing": ("inspect", "CACHE", "HASH", "--ir"),
    "listing as JSON": ("inspect", "CACHE", "HASH", "--ir", "--json"),
    "timeline": ("inspect", "CACHE", "--timeline"),
    "timetable drawn": ("inspect", "CACHE", "HASH", "--svg", "timetable"),
    "partitions drawn": ("inspect", "CACHE", "HASH", "--svg", "partitions"),
    "timeline drawn": ("inspect", "CACHE", "HASH", "--svg", "timeline"),
    "shared memory drawn": ("inspect", "CACHE", "HASH", "--svg", "shared"),
    "occupancy drawn": ("inspect", "CACHE", "HASH", "--svg", "occupancy"),
    "graph": ("inspect", "CACHE", "--graph", "graphml"),
    "graph as dot": ("inspect", "CACHE", "--graph", "dot"),
    "pressure": ("inspect", "CACHE", "--registers", "--json"),
    "findings": ("findings", "CACHE"),
    "findings as SARIF": ("findings", "CACHE", "-f", "sarif"),
    "findings as annotations": ("findings", "CACHE", "-f", "github"),
    "page": ("report", "CACHE", "-o", "AWAY/page.html", "--no-index"),
    "baseline": ("baseline", "CACHE", "-o", "AWAY/recorded.json"),
    "held against a baseline": ("check", "CACHE", "-b", "AWAY/baseline.json", "-f", "github"),
    "held against it, as SARIF": ("check", "CACHE", "-b", "AWAY/baseline.json", "-f", "sarif"),
    "compared": ("diff", "WHOLE", "CACHE", "--fail-on", "any"),
    "compared as JSON": ("diff", "CACHE", "WHOLE", "--json"),
    "compared as Markdown": ("diff", "WHOLE", "CACHE", "-f", "markdown"),
    "compared as a picture": ("diff", "WHOLE", "CACHE", "--svg", "timeline"),
    "matrix": ("matrix", "CACHE"),
    "causes": ("matrix", "CACHE", "--why"),
    "watched": ("watch", "CACHE", "--all", "--idle", "0", "--every", "0.01"),
    "timeline as JSON": ("inspect", "CACHE", "--timeline", "--json"),
    "pressure told": ("inspect", "CACHE", "--registers"),
    "graph as JSON": ("inspect", "CACHE", "--graph", "json"),
    "findings as JSON": ("findings", "CACHE", "--json"),
    "held against it": ("check", "CACHE", "-b", "AWAY/baseline.json", "--fail-on", "any"),
    "held against it, as Markdown": ("check", "CACHE", "-b", "AWAY/baseline.json", "-f", "markdown"),
    "held against it, as JUnit": ("check", "CACHE", "-b", "AWAY/baseline.json", "-f", "junit"),
    "held against it, in a file": ("check", "CACHE", "-b", "AWAY/baseline.json", "-o", "AWAY/held.sarif"),
    "compared as JUnit": ("diff", "WHOLE", "CACHE", "-f", "junit"),
    "compared as a page": ("diff", "WHOLE", "CACHE", "--html", "AWAY/diff.html"),
    "matrix as JSON": ("matrix", "CACHE", "--json"),
    "matrix as a page": ("matrix", "CACHE", "--html", "AWAY/matrix.html"),
    "causes as JSON": ("matrix", "CACHE", "--why", "--json"),
    "watched as JSON": ("watch", "CACHE", "--all", "--idle", "0", "--every", "0.01", "--json", "--no-index"),
    "briefly": ("inspect", "CACHE", "HASH", "--brief"),
    "ranked": ("rank", "CACHE", "--grid", "2", "--steps", "3000"),
    "run on paper": ("predict", "CACHE", "--grid", "2", "--steps", "5000", "--json"),
}
"""Name → the command. `WHOLE` is a cache with the kernel as it was, `AWAY` a directory that takes what is
written and has a baseline of the whole kernel."""


def check_view(view: str, broken: Path, whole: Path, away: Path) -> None:
    """Run one command; raise where it does anything but end in words."""
    entry = next(broken.iterdir()).name
    names = {"CACHE": str(broken), "WHOLE": str(whole), "AWAY": str(away), "HASH": entry}
    check_command([filled(word, names) for word in VIEWS[view]], away)
    check_written(away)


def filled(word: str, names: Mapping[str, str]) -> str:
    """A word of a view with the directories that it stands for."""
    first, slash, rest = word.partition("/")
    return names.get(first, first) + slash + rest

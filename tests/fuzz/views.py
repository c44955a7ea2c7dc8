"""Commands over a damaged kernel, in this process: each ends in words, with an exit code of the four."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest.mock import patch

from typer.main import get_command

from artifact_inspector.cli import app
from tests.fuzz.checks import EscapeError

__all__ = ["VIEWS", "check_view", "run_here"]

_FAULTS = ("inspector itself failed", "Traceback (most recent call last)")

VIEWS: Mapping[str, tuple[str, ...]] = {
    "document": ("inspect", "CACHE", "--json"),
    "rows": ("inspect", "CACHE"),
    "story": ("inspect", "CACHE", "HASH"),
    "listing": ("inspect", "CACHE", "HASH", "--ir"),
    "listing as JSON": ("inspect", "CACHE", "HASH", "--ir", "--json"),
    "timeline": ("timeline", "CACHE"),
    "timetable drawn": ("inspect", "CACHE", "HASH", "--svg", "timetable"),
    "timeline drawn": ("inspect", "CACHE", "HASH", "--svg", "timeline"),
    "shared memory drawn": ("inspect", "CACHE", "HASH", "--svg", "shared"),
    "occupancy drawn": ("inspect", "CACHE", "HASH", "--svg", "occupancy"),
    "graph": ("graph", "CACHE", "-f", "graphml"),
    "graph as dot": ("graph", "CACHE", "-f", "dot"),
    "pressure": ("pressure", "CACHE", "--json"),
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
    "causes": ("why", "CACHE"),
    "watched": ("watch", "CACHE", "--all", "--idle", "0", "--every", "0.01"),
    "run on paper": ("predict", "CACHE", "--grid", "2", "--steps", "5000", "--json"),
}
"""Name → the command. `WHOLE` is a cache with the kernel as it was, `AWAY` a directory that takes what is
written and has a baseline of the whole kernel."""


def check_view(view: str, broken: Path, whole: Path, away: Path) -> None:
    """Run one command; raise where it does anything but end in words."""
    entry = next(broken.iterdir()).name
    names = {"CACHE": str(broken), "WHOLE": str(whole), "AWAY": str(away), "HASH": entry}
    code, said = run_here([_filled(word, names) for word in VIEWS[view]])
    if code not in (0, 1, 2, 3):
        raise EscapeError(f"{view}: exit code {code}")
    for fault in _FAULTS:
        if fault in said:
            raise EscapeError(f"{view}: {said[said.index(fault) :][:200]}")


@cache
def _command() -> Callable[..., object]:
    return get_command(app).main


def run_here(words: list[str], index: str = "off") -> tuple[object, str]:
    """The exit code of a command and all that it prints, in this process."""
    kept = io.BytesIO()
    stream = io.TextIOWrapper(kept, encoding="utf-8", write_through=True)
    environment = patch.dict(os.environ, {"ARTIFACT_INSPECTOR_INDEX": index})
    try:
        with environment, redirect_stdout(stream), redirect_stderr(stream):
            _command()(words, prog_name="inspect-kernel")
    except SystemExit as end:
        return end.code or 0, kept.getvalue().decode("utf-8")
    return 0, kept.getvalue().decode("utf-8")


def _filled(word: str, names: Mapping[str, str]) -> str:
    first, slash, rest = word.partition("/")
    return names.get(first, first) + slash + rest

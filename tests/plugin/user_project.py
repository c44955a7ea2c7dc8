"""The project that docs/pytest.md shows, laid out and run as a user would run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pytest.md"
FILE = re.compile(r"<!-- file (\S+) -->\n```py\n(.*?)```", re.S)
SHOWN = re.compile(
    r"(?P<head><!-- pytest -->\n```sh\npytest (?P<arguments>[^\n]+)\n```\n\n```text\n)(?P<output>.*?)```", re.S
)


def is_installed() -> bool:
    """Whether the plugin is there by its entry point; an installation from before it had one is not enough."""
    return any(point.value == "artifact_inspector.pytest_plugin" for point in entry_points(group="pytest11"))


PLUGIN = [] if is_installed() else ["-p", "artifact_inspector.pytest_plugin"]


def lay_out(directory: Path) -> None:
    """Write the page's files."""
    for name, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        (directory / name).write_text(text, encoding="utf-8")
    (directory / "fixtures").symlink_to(ROOT / "fixtures")


def run_pytest(directory: Path, *arguments: str, columns: int = 100) -> subprocess.CompletedProcess[str]:
    """Pytest in a process of its own, as at a terminal so wide."""
    settings = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))},
        "COLUMNS": str(columns),
        "NO_COLOR": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": str(ROOT),
    }
    settings.pop("BUILD_NUMBER", None)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *PLUGIN, *arguments],
        cwd=directory,
        env=settings,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def steady(output: str) -> str:
    """The output without what differs from run to run, the time, and without blanks at the ends of lines."""
    output = re.sub(r"in \d+\.\d+s(?: \([\d:]+\))?", "in …s", output)
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())

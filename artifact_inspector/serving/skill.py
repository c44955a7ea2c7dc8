"""The skill file: what an agent should know of this tool before it uses it."""

from __future__ import annotations

from importlib.resources import files


def skill_text() -> str:
    """The skill file, Markdown with the name and the description in front that agents choose it by."""
    return files(__package__).joinpath("skill.md").read_text(encoding="utf-8")

"""The skill file, which explains to agents when and how to use this tool."""

from __future__ import annotations

from importlib.resources import files


def skill_text() -> str:
    """The skill file: Markdown, with the name and description by which agents select it first."""
    return files(__package__).joinpath("skill.md").read_text(encoding="utf-8")

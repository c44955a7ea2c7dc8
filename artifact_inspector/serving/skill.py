"""The skill file: what an agent should know of this tool before it uses it."""

from __future__ import annotations

__all__ = ["skill_text"]


def skill_text() -> str:
    """The skill file as Markdown."""
    return _TEXT


_TEXT = ""

"""Reports in a few lines, for who reads many of them: `--brief`."""

from __future__ import annotations

MOST_LINES = 12
"""Of one run of the command."""
_state: dict[str, int | None] = {"left": None}


def set_brief(*, wanted: bool) -> None:
    """Begin a run that may print a few lines, or as many as it likes."""
    _state["left"] = MOST_LINES if wanted else None


def is_brief() -> bool:
    """Whether reports are to be short."""
    return _state["left"] is not None


def cut(text: str) -> str:
    r"""What may still be printed of a text; where that is not all, the last line says how much there is.

    Example:
        >>> set_brief(wanted=True)
        >>> print(cut("line\n" * 40).splitlines()[-1])
        … 29 more lines without --brief
        >>> set_brief(wanted=False)
    """
    left = _state["left"]
    if left is None:
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > left:
        more = len(lines) - max(0, left - 1)
        lines = [*lines[: max(0, left - 1)], f"… {more} more lines without --brief"][: max(left, 0)]
    _state["left"] = left - len(lines)
    return "".join(f"{line}\n" for line in lines)

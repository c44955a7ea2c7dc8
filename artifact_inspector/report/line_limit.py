"""Short reports: the line limit of `--brief`."""

from __future__ import annotations

MAX_LINES = 12
"""Lines that one run of the command prints with `--brief`."""
_state: dict[str, int | None] = {"left": None}


def set_brief(*, enabled: bool) -> None:
    """Start a run with or without the line limit."""
    _state["left"] = MAX_LINES if enabled else None


def is_brief() -> bool:
    """Whether `--brief` is on."""
    return _state["left"] is not None


def cut(text: str) -> str:
    r"""The text cut to the lines left of the limit; the last line then counts the omitted ones.

    Example:
        >>> set_brief(enabled=True)
        >>> print(cut("line\n" * 40).splitlines()[-1])
        … 29 more lines without --brief
        >>> set_brief(enabled=False)
    """
    lines_left = _state["left"]
    if lines_left is None:
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > lines_left:
        omitted = len(lines) - max(0, lines_left - 1)
        lines = [*lines[: max(0, lines_left - 1)], f"… {omitted} more lines without --brief"][: max(lines_left, 0)]
    _state["left"] = lines_left - len(lines)
    return "".join(f"{line}\n" for line in lines)

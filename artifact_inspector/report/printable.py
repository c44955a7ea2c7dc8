"""Text that stays in its frame: what a file holds can neither move a cursor nor give an order to a CI system.

Source: Unicode's UTR 36 for marks that turn a line round; the runner of GitHub Actions, which obeys every
line of output that begins with `::`, and `##[` anywhere in one.
"""

from __future__ import annotations

import re

__all__ = ["escaped", "obeyed_by_nobody"]

_ORDER = re.compile(r"^([^\S\n]*):(?=:)|#(#\[)", re.M)


def escaped(text: str) -> str:
    r"""The text with every character that shows nothing of its own, or turns the line round, as its escape.

    Example:
        >>> print(escaped("a" + chr(27) + "[2J"))
        a\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def obeyed_by_nobody(text: str) -> str:
    r"""The text with a backslash in what a CI system would take for a command.

    Example:
        >>> print(obeyed_by_nobody("::stop-commands::x"))
        \::stop-commands::x
    """
    return _ORDER.sub(lambda found: f"#\\{found[2]}" if found[2] else f"{found[1]}\\:", text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

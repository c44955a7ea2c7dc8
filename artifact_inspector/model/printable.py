"""Text that stays in its frame: what a file holds can neither move a cursor nor turn a line round.

Source: Unicode's UTR 36 for marks that turn a line round.
"""

from __future__ import annotations


def escaped(text: str) -> str:
    r"""The text with every character that shows nothing of its own, or turns the line round, as its escape.

    Example:
        >>> print(escaped("a" + chr(27) + "[2J"))
        a\x1b[2J
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")

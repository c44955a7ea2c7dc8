"""Escaping of untrusted text, so that it can neither move the cursor nor reverse the text direction.

Source: Unicode UTR 36 for bidirectional control characters.
"""

from __future__ import annotations


def escape_unprintable(text: str) -> str:
    r"""The text with every unprintable or bidirectional control character escaped.

    Example:
        >>> print(escape_unprintable("a" + chr(27) + "[2J"))
        a\x1b[2J
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode("ascii") for c in text)

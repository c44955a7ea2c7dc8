"""Escapes text that a CI system would run as a command.

Source: the runner of GitHub Actions, which runs every line of output that begins with `::`, and `##[`
anywhere in one; the agents of Azure Pipelines (`##vso[`) and TeamCity (`##teamcity[`).
"""

from __future__ import annotations

import re

_ORDER = re.compile(r"^([^\S\n]*):(?=:)|#(?=#\w*\[)", re.M)


def obeyed_by_nobody(text: str) -> str:
    r"""The text with a backslash in everything that a CI system would read as a command.

    Example:
        >>> print(obeyed_by_nobody("::stop-commands::x"))
        \::stop-commands::x
    """
    return without_orders(text, "\\:", "#\\")


def without_orders(text: str, colon: str, mark: str) -> str:
    r"""The text with the characters that start a CI command replaced.

    Args:
        colon: replacement for the first `:` of a line.
        mark: replacement for `#`.

    Example:
        >>> print(without_orders("a ##vso[x]", "&#58;", "&#35;"))
        a &#35;#vso[x]
    """
    return _ORDER.sub(lambda found: mark if found[0] == "#" else f"{found[1]}{colon}", text)

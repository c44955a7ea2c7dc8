"""Text that gives no order to a CI system.

Source: the runner of GitHub Actions, which obeys every line of output that begins with `::`, and `##[`
anywhere in one; the agents of Azure Pipelines (`##vso[`) and TeamCity (`##teamcity[`).
"""

from __future__ import annotations

import re

_ORDER = re.compile(r"^([^\S\n]*):(?=:)|#(?=#\w*\[)", re.M)


def obeyed_by_nobody(text: str) -> str:
    r"""The text with a backslash in what a CI system would take for a command.

    Example:
        >>> print(obeyed_by_nobody("::stop-commands::x"))
        \::stop-commands::x
    """
    return without_orders(text, "\\:", "#\\")


def without_orders(text: str, colon: str, mark: str) -> str:
    r"""The text with another spelling of the characters that would begin a command.

    Args:
        colon: for the first one of a line.
        mark: for `#`.

    Example:
        >>> print(without_orders("a ##vso[x]", "&#58;", "&#35;"))
        a &#35;#vso[x]
    """
    return _ORDER.sub(lambda found: mark if found[0] == "#" else f"{found[1]}{colon}", text)

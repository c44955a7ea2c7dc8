"""Text that gives no order to a CI system.

Source: the runner of GitHub Actions, which obeys every line of output that begins with `::`, and `##[`
anywhere in one.
"""

from __future__ import annotations

import re

__all__ = ["obeyed_by_nobody"]

_ORDER = re.compile(r"^([^\S\n]*):(?=:)|#(#\[)", re.M)


def obeyed_by_nobody(text: str) -> str:
    r"""The text with a backslash in what a CI system would take for a command.

    Example:
        >>> print(obeyed_by_nobody("::stop-commands::x"))
        \::stop-commands::x
    """
    return _ORDER.sub(lambda found: f"#\\{found[2]}" if found[2] else f"{found[1]}\\:", text)

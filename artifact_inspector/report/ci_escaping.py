"""Escapes text that a CI system would run as a command.

Source: the runner of GitHub Actions, which runs every line of output that begins with `::`, and `##[`
anywhere in one; the agents of Azure Pipelines (`##vso[`) and TeamCity (`##teamcity[`).
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"^([^\S\n]*):(?=:)|#(?=#\w*\[)", re.M)


def escape_commands(text: str) -> str:
    r"""The text with a backslash in everything that a CI system would read as a command.

    Example:
        >>> print(escape_commands("::stop-commands::x"))
        \::stop-commands::x
    """
    return replace_commands(text, "\\:", "#\\")


def replace_commands(text: str, colon: str, mark: str) -> str:
    r"""The text with the characters that start a CI command replaced.

    Args:
        colon: replacement for the first `:` of a line.
        mark: replacement for `#`.

    Example:
        >>> print(replace_commands("a ##vso[x]", "&#58;", "&#35;"))
        a &#35;#vso[x]
    """
    return _COMMAND.sub(lambda command_match: mark if command_match[0] == "#" else f"{command_match[1]}{colon}", text)

"""What kernels of one run have in common: facts of a text that several of them begin with.

The first stage of a kernel is the program as written. It is the same for every target and for most
configurations of a sweep, and what is found of it alone is found once.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from artifact_inspector.model import Stage

MOST_CHARACTERS = 400_000
"""Of all texts together whose facts are kept; what is parsed takes some fifty times as much."""


class Commons:
    """Facts by text, those of the texts that were asked for last."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._known: OrderedDict[tuple[Stage, str], dict[str, Any]] = OrderedDict()
        self._characters = 0

    def of(self, stage: Stage, text: str) -> dict[str, Any]:
        """The facts of a text that are known, by the names of their passes, to be added to."""
        key = (stage, text)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        facts: dict[str, Any] = {}
        if len(text) <= MOST_CHARACTERS:
            self._known[key] = facts
            self._characters += len(text)
        while self._characters > MOST_CHARACTERS:
            (_, oldest), _ = self._known.popitem(last=False)
            self._characters -= len(oldest)
        return facts

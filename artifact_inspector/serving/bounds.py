"""Bounded answers: the items that fit, what was left out, and the call that returns the rest.

Text from files is escaped, put on one line and truncated, so that it cannot be read as an instruction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifact_inspector.model.printable import escaped

DEFAULT_TOKENS = 2000
MOST_TOKENS = 20_000
CHARACTERS_PER_TOKEN = 3
"""Characters of JSON per token; common tokenizers have 3 to 4."""
ROOM_FOR_THE_REST = 600
"""Characters reserved for `left_out` and `next`."""
LONGEST = 600
"""Maximal characters of one string."""
MOST_IN_A_LIST = 24
"""Maximal members of a list inside an item."""
_TEXTS = frozenset({"message", "remedy", "page", "answer"})
"""Keys whose strings may have several lines: text of this program, or messages of a compiler."""

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a tool."""

    items: Sequence[Item]
    left_out: str | None = None
    """What did not fit or was not requested; None if the answer is complete."""
    next: Mapping[str, Any] | None = None
    """The call that returns what was left out: `tool`, `arguments`."""
    notes: Sequence[str] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The answer as JSON of its schema."""
        return {
            "items": list(self.items),
            "left_out": self.left_out,
            "next": None if self.next is None else dict(self.next),
        }


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximal size of an answer."""

    tokens: int = DEFAULT_TOKENS

    @property
    def characters(self) -> int:
        """Maximal characters of the items as JSON."""
        return max(1, min(self.tokens, MOST_TOKENS)) * CHARACTERS_PER_TOKEN - ROOM_FOR_THE_REST


def fit(items: Iterable[Item], bound: Bound) -> list[Item]:
    """The first items that fit, sanitized; at least one, truncated if it does not fit."""
    kept: list[Item] = []
    room = bound.characters
    for item in items:
        one = safe(item)
        size = size_of(one)
        if size > room:
            if not kept:
                kept.append(_cut(one, room))
            break
        kept.append(one)
        room -= size
    return kept


def size_of(item: Item) -> int:
    """Characters of an item in an answer."""
    return len(json.dumps(safe(item), ensure_ascii=False)) + 2


def safe(value: Any, key: str = "") -> Any:
    """A value without control characters, text-direction marks or line breaks in its strings."""
    if isinstance(value, str):
        text = escaped(value)
        text = text if key in _TEXTS else text.replace("\n", "\\n")
        longest = LONGEST * 4 if key in _TEXTS else LONGEST
        return text if len(text) <= longest else f"{text[:longest]}… {len(text) - longest} more characters"
    if isinstance(value, Mapping):
        return {safe(str(name)): safe(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        kept = [safe(one, key) for one in value[:MOST_IN_A_LIST]]
        return kept if len(value) <= MOST_IN_A_LIST else [*kept, f"… {len(value) - MOST_IN_A_LIST} more"]
    return value


def _cut(item: Item, room: int) -> Item:
    """The first keys of an item that fit."""
    kept: dict[str, Any] = {}
    for key, value in item.items():
        if len(json.dumps({**kept, key: value}, ensure_ascii=False)) > room:
            kept["cut"] = True
            break
        kept[key] = value
    return kept

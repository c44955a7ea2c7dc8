"""Answers that fit: as many items as there is room for, what was left out, and how to ask for it.

Nothing in an answer is taken for an order: what comes from files is escaped, on one line, and cut.
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
"""Of JSON, on the safe side: the tokenisers that are in use make 3 to 4 of it."""
ROOM_FOR_THE_REST = 600
"""Characters for `left_out` and `next`."""
LONGEST = 600
"""Characters of one text."""
MOST_IN_A_LIST = 24
"""Members of a list inside an item."""
_TEXTS = frozenset({"message", "remedy", "page", "answer"})
"""Keys whose texts may have several lines: they are this program's, or a compiler's own message."""

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers."""

    items: Sequence[Item]
    left_out: str | None = None
    """What did not fit, or was not asked for; None where all is there."""
    next: Mapping[str, Any] | None = None
    """The call that asks for what was left out: `tool`, `arguments`."""
    notes: Sequence[str] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The answer as its schema says."""
        return {
            "items": list(self.items),
            "left_out": self.left_out,
            "next": None if self.next is None else dict(self.next),
        }


@dataclass(frozen=True, slots=True)
class Bound:
    """How much an answer may be."""

    tokens: int = DEFAULT_TOKENS

    @property
    def characters(self) -> int:
        """Of the items, written as JSON."""
        return max(1, min(self.tokens, MOST_TOKENS)) * CHARACTERS_PER_TOKEN - ROOM_FOR_THE_REST


def fit(items: Iterable[Item], bound: Bound) -> list[Item]:
    """The first items that fit together, made safe; one at least, cut to the room that there is."""
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
    """Characters that an item takes in an answer."""
    return len(json.dumps(safe(item), ensure_ascii=False)) + 2


def safe(value: Any, key: str = "") -> Any:
    """A value in which no text can move a cursor, turn a line round, or begin a line of its own."""
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
    """As many keys of one item as fit."""
    kept: dict[str, Any] = {}
    for key, value in item.items():
        if len(json.dumps({**kept, key: value}, ensure_ascii=False)) > room:
            kept["cut"] = True
            break
        kept[key] = value
    return kept

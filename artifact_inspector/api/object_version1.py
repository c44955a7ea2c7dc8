"""Objects that `to_json` of format 1 wrote, in the layout of format 2.

Format 1 listed the same values in the same order. Some types had other names, some had fewer fields, and one
enumeration had other words.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from artifact_inspector.analysis.access.load_widths import NarrowReason
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.compiling import KernelRequest
from artifact_inspector.facts.region import RegionWork
from artifact_inspector.files.artifact import Artifact, Cache
from artifact_inspector.model import EventKind, SourceLine

FORMAT_NAME = "artifact-inspector object 1"
RENAMED_TYPES: Mapping[str, str] = {"Other": "OtherFile", "Pair": "RoundPair", "Wait": "WaitFacts"}
"""Name of a type in format 1 → its name in format 2, where it differs."""
_RENAMED_VALUES: Mapping[type, Mapping[str, NarrowReason]] = {
    NarrowReason: {
        "nothing says that the argument is a multiple of 16": NarrowReason.UNALIGNED,
        "neighbours are a stride apart that is not known to be 1": NarrowReason.STRIDE,
        "addresses are taken modulo a number of unknown divisibility": NarrowReason.MODULO,
        "addresses come from a division": NarrowReason.DIVISION,
        "addresses are loaded": NarrowReason.GATHER,
        "an offset is no multiple of the width": NarrowReason.OFFSET,
        "neighbours may be masked apart": NarrowReason.MASK,
        "the tile has fewer bytes for each thread": NarrowReason.TILE,
        "one number for the whole block": NarrowReason.SCALAR,
        "the layout gives each thread fewer neighbours": NarrowReason.LAYOUT,
    }
}
_LETTER_RUN = re.compile(r"([A-Za-z])(\d+)")
_KIND_OF_LETTER = {kind.letter: kind.count_name for kind in EventKind if kind.letter}


def upgrade_object(kind: Any, plain: Any, opaque: Mapping[type, Mapping[str, object]]) -> Any:
    """A value of format 1 in the layout of format 2.

    Args:
        opaque: type → fields that are stored as they are.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        structured = [member for member in arguments if _is_structured(member)]
        return plain if plain is None or len(structured) != 1 else upgrade_object(structured[0], plain, opaque)
    if not isinstance(plain, list):
        renamed = _RENAMED_VALUES.get(kind, {}).get(plain) if isinstance(plain, str) else None
        return plain if renamed is None else renamed.value
    if origin is tuple:
        members = [arguments[0]] * len(plain) if arguments[1:] == (Ellipsis,) else arguments
        return [upgrade_object(member, item, opaque) for member, item in zip(members, plain, strict=True)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [[key, upgrade_object(arguments[1], item, opaque)] for key, item in plain]
    if not _is_record(kind):
        return plain
    special = opaque.get(kind, {})
    values = [
        item if name in special else upgrade_object(hint, item, opaque)
        for (name, hint), item in zip(_fields(kind), plain, strict=False)
    ]
    return [*values, *_added_values(kind, plain)]


def _added_values(kind: type, plain: list[Any]) -> list[Any]:
    """Values of the fields that format 1 lacked."""
    if len(plain) == len(_fields(kind)):
        return []
    if kind is RegionFacts:
        signature = plain[[name for name, _ in _fields(kind)].index("signature")]
        return [[list(item) for item in count_events(signature).items()], None]
    added: dict[type, list[Any]] = {KernelRequest: [False], Cache: ["", []], Artifact: [[]], RegionWork: [[], None]}
    return added.get(kind, [])


def count_events(signature: str) -> dict[str, int]:
    """Kind of event → its number in a signature.

    Example:
        >>> count_events("L2 F4 L1")
        {'global_load': 3, 'float': 4}
    """
    counts: Counter[str] = Counter()
    for letter, number in _LETTER_RUN.findall(signature):
        if letter in _KIND_OF_LETTER:
            counts[_KIND_OF_LETTER[letter]] += int(number)
    return dict(counts)


def _is_record(kind: Any) -> bool:
    is_type = isinstance(kind, type) and kind is not SourceLine
    return is_type and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"))


def _is_structured(kind: Any) -> bool:
    is_enumeration = isinstance(kind, type) and issubclass(kind, Enum)
    return get_origin(kind) is not None or is_enumeration or _is_record(kind)


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of the stored fields, in their order."""
    hints = get_type_hints(kind)
    if hasattr(kind, "_fields"):
        return tuple((name, hints[name]) for name in kind._fields)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind) if field.init)

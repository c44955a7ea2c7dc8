"""JSON of malice: documents of which some value is another than anybody would write there."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from tests.fuzz.mutants import damage
from tests.fuzz.poison import WORDS

__all__ = ["damaged_document", "value"]

_MODEST = (
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    65,
    100,
    127,
    128,
    255,
    256,
    1000,
    4096,
    -1,
    -2,
    0.5,
    3.0,
)
_NUMBERS = (0, 1, -1, 2, 7, 64, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**40, 2**47, 2**48, 2**62, 2**63 - 1, 2**63,
            2**64, -(2**63), 10**18, 10**30, 10**400, 0.0, -0.0, 0.5, 1e300, -1e308, 5e-324, 1e16,
            float("inf"), float("-inf"), float("nan"))  # fmt: skip
_TEXTS = ("", "1", "x", "0x10", "²", "1_0", "1" * 5000, "0x" + "f" * 20000, "None", "fp16[4,8]", "fp16[8](2)", "i32[0]",
          "fp16[99999999999,99999999999]", "*fp16", "i32", "torch.float16", "cdiv(M, 4)", "M**M", "a" * 100000,
          "sm_90", "gfx942", "3.6.0", "ttgir")  # fmt: skip


_NEST = "so many lists in lists: "
_NESTED = re.compile(f'"{_NEST}(\\d+)"')
"""What stands for one until the document is text: Python writes none of that depth."""


def value(chance: random.Random, depth: int = 0) -> Any:
    """Anything that JSON may hold, and Python's own words for numbers that it may not."""
    what = chance.randrange(12)
    if what < 5:
        return chance.choice(_NUMBERS)
    if what < 7:
        return chance.choice(_TEXTS)
    if what < 8:
        return chance.choice(WORDS)
    if what < 9:
        return chance.choice((None, True, False))
    if what < 10 and depth < 3:
        return [value(chance, depth + 1) for _ in range(chance.choice((0, 1, 2, 3, 40)))]
    if depth < 3 and what < 11:
        return {str(value(chance, 3))[:2000]: value(chance, depth + 1) for _ in range(chance.choice((0, 1, 3)))}
    return f"{_NEST}{chance.choice((3, 900, 3000, 40000))}"


def damaged_document(document: Any, chance: random.Random) -> str:
    """The document with one to six values changed, as text; now and then damaged as a text, too."""
    document = json.loads(json.dumps(document))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        document = _once(document, chance)
    text = _NESTED.sub(lambda found: "[" * int(found[1]) + "1" + "]" * int(found[1]), json.dumps(document))
    if chance.random() < 0.1:
        text = damage(text, (text,), chance)
    return text


def _once(document: Any, chance: random.Random) -> Any:
    places = list(_places(document))[:20000]
    if not places or chance.random() < 0.01:
        return value(chance)
    holder, key = chance.choice(places)
    what = chance.randrange(8)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, list):
        holder.insert(key, value(chance))
    elif what == 1:
        holder[str(value(chance, 3))[:2000]] = holder[key]
    elif what == 2:
        other, name = chance.choice(places)
        holder[key] = json.loads(json.dumps(other[name])) if name in _keys(other) else None
    elif what == 3 and isinstance(holder[key], list):
        holder[key] = holder[key] * chance.choice((2, 50))
    elif what < 6 and type(holder[key]) in (int, float):
        holder[key] = chance.choice(_MODEST if chance.random() < 0.6 else _NUMBERS)
    elif what < 6 and isinstance(holder[key], str):
        holder[key] = chance.choice((*_TEXTS, *WORDS))
    else:
        holder[key] = value(chance)
    return document


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def _places(document: Any) -> Any:
    """Each list or object with each key of it."""
    front = [document]
    while front:
        found = front.pop()
        for key in list(_keys(found)) if isinstance(found, (dict, list)) else ():
            yield found, key
            front.append(found[key])

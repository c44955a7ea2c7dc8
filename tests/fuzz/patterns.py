"""`python -m tests.fuzz.patterns [--tries 60]`: no pattern takes time that grows with the square of a text.

Of each regular expression of the package texts are made that it matches in part: a piece of one is repeated for
ten thousand characters, and given to the pattern in the ways that its module uses it.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

try:
    from re import _constants as op  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as op
    import sre_parse as parser

import artifact_inspector

__all__ = ["find_slow", "patterns"]

_LENGTH = 12_000
_MOST_SECONDS = 0.05
"""What is linear takes under one millisecond."""
_USES = re.compile(r"\b(_?[A-Z][A-Z_0-9]*)\.(search|finditer|findall|sub|subn|split|match|fullmatch)\b")
_CLASSES = {
    op.CATEGORY_DIGIT: "0", op.CATEGORY_SPACE: " \t\n", op.CATEGORY_WORD: "a_0",
    op.CATEGORY_NOT_SPACE: "a.", op.CATEGORY_NOT_WORD: " .", op.CATEGORY_NOT_DIGIT: "a ",
}  # fmt: skip
_LEFT_OUT = (".compiling.", ".cli.", ".kernels", "__main__", "._device")
"""What reads only the user's own words, or cannot be imported everywhere."""


def patterns() -> Iterator[tuple[str, re.Pattern[str], frozenset[str]]]:
    """Name, pattern, and how its module uses it; `search` where that cannot be seen."""
    seen = set()
    for info in pkgutil.walk_packages(artifact_inspector.__path__, "artifact_inspector."):
        if any(part in info.name for part in _LEFT_OUT):
            continue
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # of an extra that is not there
            continue
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        uses: dict[str, set[str]] = {}
        for name, way in _USES.findall(text):
            uses.setdefault(name, set()).add(way)
        for name, value in list(vars(module).items()):
            if not isinstance(value, re.Pattern) or not isinstance(value.pattern, str) or name not in uses:
                continue
            ways = frozenset(uses[name])
            if (value.pattern, ways) not in seen:
                seen.add((value.pattern, ways))
                yield f"{info.name}.{name}", value, ways


def find_slow(pattern: re.Pattern[str], ways: frozenset[str], tries: int) -> str | None:
    """A text for which a pattern takes long, in short; None where none was found."""
    tree, chance = parser.parse(pattern.pattern, pattern.flags), random.Random(pattern.pattern)
    for _ in range(tries):
        some = _matching(tree, chance) or "a"
        at = chance.randrange(len(some))
        piece = some[at : at + chance.choice((1, 1, 1, 2, 3, 5, 9))]
        before = chance.choice((some[:at], some[:at], ""))
        text = before + piece * (_LENGTH // len(piece)) + chance.choice((some[at:], "", "\0", '"', "\n", " 0 "))
        for ask in _asked(pattern, ways):
            if _seconds(ask, text) > _MOST_SECONDS and min(_seconds(ask, text) for _ in range(2)) > _MOST_SECONDS:
                return f"{before[-40:]!r} and {piece!r} again and again"
    return None


def _asked(pattern: re.Pattern[str], ways: frozenset[str]) -> Iterator[Callable[[str], object]]:
    if ways - {"match", "fullmatch"}:
        yield pattern.findall if ways - {"match", "fullmatch", "search"} else pattern.search
    if "match" in ways:
        yield pattern.match
    if "fullmatch" in ways:
        yield pattern.fullmatch


def _seconds(ask: Callable[[str], object], text: str) -> float:
    started = time.process_time()
    ask(text)
    return time.process_time() - started


def _matching(tree: Any, chance: random.Random) -> str:
    """A text that the pattern may match; what it looks ahead for is passed over."""
    parts = []
    for what, value in tree:
        if what is op.LITERAL:
            parts.append(chr(value))
        elif what is op.NOT_LITERAL:
            parts.append(chance.choice([one for one in "a 0.\n" if ord(one) != value]))
        elif what is op.ANY:
            parts.append(chance.choice("a 0.,("))
        elif what is op.IN:
            parts.append(_one_of(value, chance))
        elif what in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, inner = value
            times = max(least, min(int(most), chance.choice((least, least + 1, least + 2)), 6))
            parts += [_matching(inner, chance) for _ in range(times)]
        elif what is op.SUBPATTERN:
            parts.append(_matching(value[3], chance))
        elif what is op.BRANCH:
            parts.append(_matching(chance.choice(value[1]), chance))
    return "".join(parts)


def _one_of(items: Any, chance: random.Random) -> str:
    """A character of a class."""
    listed: list[str] = []
    for what, value in items:
        if what is op.LITERAL:
            listed.append(chr(value))
        elif what is op.RANGE:
            listed += [chr(value[0]), chr(value[1]), chr(chance.randint(*value))]
        elif what is op.CATEGORY:
            listed += _CLASSES[value]
    if items[0][0] is op.NEGATE:
        listed = [one for one in "a0 .(:-,z" if one not in listed] or ["é"]
    return chance.choice(listed)


def main() -> int:
    """Try all patterns; 1 where one is slow."""
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz.patterns", description=__doc__)
    asked.add_argument("--tries", type=int, default=60, help="texts for each pattern")
    tries, slow, count = asked.parse_args().tries, 0, 0
    for name, pattern, ways in patterns():
        count += 1
        found = find_slow(pattern, ways, tries)
        if found is not None:
            slow += 1
            print(f"{name}: {found}", flush=True)
    print(f"{count} patterns, {tries} texts each: {slow} slow")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

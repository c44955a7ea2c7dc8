"""Expected values as JSON that people read: one file each, and a failure lists each old and new value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from artifact_inspector.model import SourceLine

WIDTH = 118
"""Most characters of a value that is written on one line."""


def plain(value: object) -> Any:
    """A value as JSON, with the names of its fields; what is None, empty or false is left out of an object."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if isinstance(value, SourceLine):
        return " < ".join(value.chain)
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return {name: one for name, one in named.items() if one not in (None, [], {}, "", False)}
    if hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items() if one not in (None, (), "")}
    if isinstance(value, dict):
        return {str(plain(key)): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if value is None or isinstance(value, str | int | float):
        return value
    return type(value).__name__ if type(value).__str__ is object.__str__ else str(value)


def rows_of(values: Iterable[Any]) -> list[str]:
    """Small dataclasses as lines of text, field after field."""
    return [" ".join(str(plain(getattr(value, field.name))) for field in fields(value)) for value in values]


def inputs_by_result(results: Sequence[object]) -> dict[str, str]:
    """Result → the numbers of the inputs that have it: `0-3 7`."""
    numbers: dict[str, list[int]] = {}
    for number, result in enumerate(results):
        numbers.setdefault(json.dumps(plain(result), ensure_ascii=False), []).append(number)
    return {result: _ranges(inputs) for result, inputs in numbers.items()}


def _ranges(numbers: Sequence[int]) -> str:
    known = set(numbers)
    firsts = [number for number in numbers if number - 1 not in known]
    lasts = [number for number in numbers if number + 1 not in known]
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(firsts, lasts, strict=True))


def written(value: Any, indent: str = "") -> str:
    """JSON with each value on one line where it fits, else each of its members on its own lines."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        members = [f"{inner}{json.dumps(k, ensure_ascii=False)}: {written(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + written(one, inner) for one in value) + f"\n{indent}]"


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Each part of two values that is not the same, with the old and the new one."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from differences(old.get(key), new.get(key), f"{place} {key}".strip())
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{place}[{at}]")
    elif old != new:
        yield f"{place}: {json.dumps(old, ensure_ascii=False)} -> {json.dumps(new, ensure_ascii=False)}"


def hold(file: Path, value: object, request: pytest.FixtureRequest) -> None:
    """Compare a value with its file; `--update-golden` writes the file."""
    text = written(plain(value)) + "\n"
    if request.config.getoption("--update-golden", default=False):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    # through JSON, in which a tuple is a list
    changed = [*differences(json.loads(file.read_text(encoding="utf-8")), json.loads(text))]
    assert not changed, "\n".join(changed)

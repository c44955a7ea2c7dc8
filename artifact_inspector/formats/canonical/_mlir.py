"""Canonical MLIR: without names and locations; constants are spelled where they are used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._names import Definitions, Names

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf'(?:[^()"]|{_QUOTED})*'
_ALIAS = re.compile(r"^(#\w+) = (?!loc\()(.*)$", re.M)
_CONSTANT = re.compile(r"(%[\w$.-]+) = (?:arith\.)?constant (.*)")
_PLACE = re.compile(rf" loc\({_INSIDE}(?:\({_INSIDE}(?:\({_INSIDE}\){_INSIDE})*\){_INSIDE})*\)")
_ALIAS_USE = re.compile(r"#\w+(?![\w.])")
_RESULTS = re.compile(r"%[\w$.:-]+(?:, %[\w$.:-]+)+ = ")
_MLIR = re.compile(
    rf"({_QUOTED}|\"(?:[^\"\\]|\\.)*$)"  # or an unclosed quote
    rf"|{_PLACE.pattern}"
    # a name is defined as an argument (`%x: i32`) or by an assignment
    r"|(%[\w$.-]+)(:\d+(?= = )|: ?(?=[!a-z])|(?= = (?!=)))?"
    rf"|({_ALIAS_USE.pattern})"
    r"|(\^\w+)"
)


def lines(text: str) -> Iterator[str]:
    layouts = Definitions(dict(_ALIAS.findall(text)))
    names = Names()
    constants: dict[str, str] = {}
    behind_results = 0

    def aliased(found: re.Match[str]) -> str:
        return layouts[found[0]]

    def renamed(found: re.Match[str]) -> str:
        quoted, name, defined, alias, block = found.groups()
        if name is not None:
            if defined is None and found.end() > behind_results:
                # spelled at the use: the order of constants must not number layouts
                return f"<{_ALIAS_USE.sub(aliased, constants[name])}>" if name in constants else names[name]
            constants.pop(name, None)
            return names.define(name) + (defined or "")
        if alias is not None:
            return layouts[alias]
        return quoted or (names[block] if block is not None else "")

    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] == "#" or line.startswith("//"):
            continue
        if line.startswith(("tt.func", "func")):
            names, constants = Names(), {}
        constant = _CONSTANT.fullmatch(line)
        if constant is not None:
            constants[constant[1]] = _PLACE.sub("", constant[2])
        else:
            results = _RESULTS.match(line)
            behind_results = 0 if results is None else results.end()
            yield _MLIR.sub(renamed, line)
    yield from layouts.spelled(lambda body: _MLIR.sub(renamed, body))

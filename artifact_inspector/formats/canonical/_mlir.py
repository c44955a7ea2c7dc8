"""Canonical MLIR: without names and locations; constants are spelled where they are used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._numbering import Definitions, NameNumbering

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf'(?:[^()"]|{_QUOTED})*'
_ALIAS = re.compile(r"^(#\w+) = (?!loc\()(.*)$", re.M)
_CONSTANT = re.compile(r"(%[\w$.-]+) = (?:arith\.)?constant (.*)")
_LOCATION = re.compile(rf" loc\({_INSIDE}(?:\({_INSIDE}(?:\({_INSIDE}\){_INSIDE})*\){_INSIDE})*\)")
_ALIAS_USE = re.compile(r"#\w+(?![\w.])")
_RESULTS = re.compile(r"%[\w$.:-]+(?:, %[\w$.:-]+)+ = ")
_MLIR = re.compile(
    rf"({_QUOTED}|\"(?:[^\"\\]|\\.)*$)"  # or an unclosed quote
    rf"|{_LOCATION.pattern}"
    # a name is defined as an argument (`%x: i32`) or by an assignment
    r"|(%[\w$.-]+)(:\d+(?= = )|: ?(?=[!a-z])|(?= = (?!=)))?"
    rf"|({_ALIAS_USE.pattern})"
    r"|(\^\w+)"
)


def canonical_lines(text: str) -> Iterator[str]:
    layouts = Definitions(dict(_ALIAS.findall(text)))
    names = NameNumbering()
    constants: dict[str, str] = {}
    results_end = 0

    def rename_alias(match: re.Match[str]) -> str:
        return layouts[match[0]]

    def rename_reference(match: re.Match[str]) -> str:
        quoted, name, defined, alias, block = match.groups()
        if name is not None:
            if defined is None and match.end() > results_end:
                # spelled at the use: the order of constants must not number layouts
                return f"<{_ALIAS_USE.sub(rename_alias, constants[name])}>" if name in constants else names[name]
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
            names, constants = NameNumbering(), {}
        constant = _CONSTANT.fullmatch(line)
        if constant is not None:
            constants[constant[1]] = _LOCATION.sub("", constant[2])
        else:
            results = _RESULTS.match(line)
            results_end = 0 if results is None else results.end()
            yield _MLIR.sub(rename_reference, line)
    yield from layouts.spell_used(lambda body: _MLIR.sub(rename_reference, body))

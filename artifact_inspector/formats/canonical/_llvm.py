"""Canonical LLVM IR: without names, debug metadata, and the numbers of other metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._numbering import Definitions, NameNumbering

_NODE = re.compile(r"^(![0-9]+|attributes #[0-9]+) = (.*)$", re.M)
_DEBUG = re.compile(r"(?:, | )!dbg !\d+")
_TYPE = re.compile(r'^(%(?:"[^"]*"|[\w$.-]+)) = type ', re.M)
_LABEL = re.compile(r'("[^"]*"|[\w$.-]+):')
_LLVM = re.compile(r'(?:, | )!dbg !\d+|(?<!\s)\s*; preds = .*|(%(?:"[^"]*"|[\w$.-]+))|"[^"]*"|(![0-9]+\b|#[0-9]+\b)')
_DEBUG_PREFIXES = ("!DI", "distinct !DI")
_LLVM_DROPPED = (";", "source_filename", "attributes #", "#dbg_", "!llvm.dbg.")


def canonical_lines(text: str) -> Iterator[str]:
    bodies = {name.removeprefix("attributes "): body for name, body in _NODE.findall(text)}
    debug_nodes = {name for name, body in bodies.items() if body.startswith(_DEBUG_PREFIXES)}
    types = _TYPE.findall(text)
    nodes = Definitions({name: body for name, body in bodies.items() if name not in debug_nodes})
    names = NameNumbering(types)
    declared = []

    def rename_reference(match: re.Match[str]) -> str:
        local, node = match.groups()
        if local is not None:
            return names[local]
        if node is not None:
            return "!DI" if node in debug_nodes else nodes[node]
        return match[0] if match[0][0] == '"' else ""

    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith(_LLVM_DROPPED) or "@llvm.dbg." in line or _NODE.match(line):
            continue
        if '"' not in line:
            line = _DEBUG.sub("", line)
        if line.startswith("define "):
            names = NameNumbering(types)
        label = _LABEL.match(line)
        if label is not None:
            yield f"{names[f'%{label[1]}']}:"
        elif line.startswith("declare "):
            declared.append(line)
        else:
            yield _LLVM.sub(rename_reference, line)
    yield from (_LLVM.sub(rename_reference, line) for line in sorted(declared, key=lambda x: x.partition(" #")[0]))
    yield from nodes.spell_used(lambda body: _LLVM.sub(rename_reference, body))

"""A stage's text without what does not matter: names, labels, places, numbering, the order of constants.

Two texts with the same canonical form are the same program but for the naming of its values. Names become
their order of first appearance, so only a renaming one to one makes texts equal: of registers that are
reused (AMDGCN), a mapping of one text's whole register file onto the other's. A text that an allocator
coloured anew may thus be told apart from its like, never one program from another be taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from artifact_inspector.formats import parse_layouts
from artifact_inspector.model import Stage

__all__ = ["canonical"]


def canonical(text: str, stage: Stage) -> str:
    r"""The canonical form of a stage's text, one statement a line; for comparison only.

    Example:
        >>> one, other = "add.s32 \t%r7, %r3, %r3;", "add.s32 %r1, %r9, %r9; // sum"
        >>> canonical(one, Stage.PTX) == canonical(other, Stage.PTX)
        True
    """
    return "\n".join(_LINES[stage](text))


class _Names:
    """New names in order of first appearance; a definition starts a new life of its name."""

    def __init__(self, mark: str = "%") -> None:
        self._mark = mark
        self._count = 0
        self._known: dict[str, str] = {}

    def define(self, name: str) -> str:
        """A new name for a value that begins to exist here."""
        new = self._known[name] = f"{self._mark}{self._count}"
        self._count += 1
        return new

    def __getitem__(self, name: str) -> str:
        return self._known.get(name) or self.define(name)


# -- MLIR ------------------------------------------------------------------------------

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf'(?:[^()"]|{_QUOTED})*'
_PLACE = re.compile(rf" loc\({_INSIDE}(?:\({_INSIDE}(?:\({_INSIDE}\){_INSIDE})*\){_INSIDE})*\)")
_ALIAS_USE = re.compile(r"#\w+(?![\w.])")
_CONSTANT = re.compile(r"(%[\w$.-]+) = (?:arith\.)?constant (.*)")
_VALUE = re.compile(r"(%[\w$.-]+)(:\d+(?= = )|: ?(?=[!a-z])|(?= = (?!=))|(?=(?:, %[\w$.:-]+)+ = (?!=)))?")


def _mlir(text: str) -> Iterator[str]:
    layouts = parse_layouts(text)
    names = _Names()
    constants: dict[str, str] = {}
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line[0] == "#" or line.startswith("//"):
            continue
        line = _PLACE.sub("", line)
        if line.startswith(("tt.func", "func")):
            names, constants = _Names(), {}
        found = _CONSTANT.fullmatch(line)
        if found is not None:
            constants[found[1]] = f"<{found[2]}>"
            continue

        def renamed(
            match: re.Match[str], names: _Names = names, constants: dict[str, str] = constants
        ) -> str:
            name, defined = match.groups()
            if defined is not None:
                constants.pop(name, None)
                return names.define(name) + defined
            return constants.get(name) or names[name]

        line = _VALUE.sub(renamed, line)
        yield _ALIAS_USE.sub(lambda use: layouts.get(use[0], use[0]), line)


# -- LLVM IR ---------------------------------------------------------------------------

_DEBUG = re.compile(r",? !dbg !\d+")
_METADATA = re.compile(r"^!(\d+) = (.*)$", re.M)
_NODE = re.compile(r"!(\d+)\b")
_GROUP = re.compile(r"^attributes #(\d+) = (.*)$", re.M)
_GROUP_USE = re.compile(r"#(\d+)\b")
_LOCAL = re.compile(r'%(?:"[^"]*"|[\w$.-]+)')
_LABEL = re.compile(r"^([\w$.-]+):")
_PREDECESSORS = re.compile(r"\s*; preds = .*$")
_DROPPED = ("!", ";", "source_filename", "attributes #", "#dbg_", "target datalayout")
NESTING = 4
"""Metadata is spelled out that deep; a loop's own node names itself."""


def _llvm(text: str) -> Iterator[str]:
    nodes, groups = dict(_METADATA.findall(text)), dict(_GROUP.findall(text))
    names = _Names()
    declared = []
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith(_DROPPED) or "@llvm.dbg." in line:
            continue
        if line.startswith("define "):
            names = _Names()
        line = _PREDECESSORS.sub("", _DEBUG.sub("", line))
        label = _LABEL.match(line)
        if label is not None:
            line = f"{names['%' + label[1]]}:"
        else:
            line = _LOCAL.sub(lambda found, names=names: names[found[0]], line)  # type: ignore[misc]
        if "!" in line:
            line = _NODE.sub(lambda found: _spelled(found[1], nodes, NESTING), line)
        if "#" in line:
            line = _GROUP_USE.sub(lambda found: groups.get(found[1], found[0]), line)
        if line.startswith("declare "):
            declared.append(line)
        else:
            yield line
    yield from sorted(declared)


def _spelled(number: str, nodes: Mapping[str, str], depth: int) -> str:
    content = nodes.get(number, "")
    if not depth or "DI" in content:
        return "!"
    return _NODE.sub(lambda found: _spelled(found[1], nodes, depth - 1), content)


# -- PTX -------------------------------------------------------------------------------

_VIRTUAL = re.compile(r"%(?:r[dshq]?|f[dl]?|p|hh?|b|q|rq)\d+\b|\$L_\w+")
_NO_CODE = (".loc", ".file", ".reg", ".pragma")
_MARK = re.compile(r"\$L__(?:tmp|func_)\w*:")


def _ptx(text: str) -> Iterator[str]:
    names = _Names()
    for raw in text.splitlines():
        line = " ".join(raw.partition("//")[0].split())
        if not line or line.startswith(_NO_CODE) or _MARK.match(line):
            continue
        if line.startswith(".section") and ".debug" in line:
            return  # line tables stand behind all code
        if ".entry" in line or line.startswith(".func"):
            names = _Names()
        yield _VIRTUAL.sub(lambda found, names=names: names[found[0]], line)  # type: ignore[misc]


# -- AMDGCN ----------------------------------------------------------------------------

_PHYSICAL = re.compile(r"\b([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?![\w.])|\.LBB\w+")


def _amdgcn(text: str) -> Iterator[str]:
    names = _Names("")

    def renamed(found: re.Match[str]) -> str:
        kind, one, first, last = found.groups()
        if kind is None:
            return f"L{names[found[0]]}"
        numbers = range(int(one), int(one) + 1) if one else range(int(first), int(last) + 1)
        return kind + "+".join(names[f"{kind}{number}"] for number in numbers)

    for raw in text.splitlines():
        line = " ".join(raw.partition(";")[0].split())
        if not line or (line[0] == "." and not line.startswith(".LBB")):
            if line.startswith((".amdgpu_metadata", ".section .debug", '.section ".debug')):
                return
            continue
        if line.endswith(":") and not line.startswith(".LBB"):
            names = _Names("")
        yield _PHYSICAL.sub(renamed, line)


# -- SASS ------------------------------------------------------------------------------

_SASS_REGISTER = re.compile(r"\b(U?[RP])(\d+)\b|`\(([^)]*)\)|\.L_\w+")
_SASS_PLACE = re.compile(r"^\s*//|/\*[0-9a-fx]*\*/")


def _sass(text: str) -> Iterator[str]:
    names = _Names("")
    for raw in text.splitlines():
        line = " ".join(_SASS_PLACE.sub("", raw).split())
        if not line or line.startswith((".section .debug", "//")):
            continue
        yield _SASS_REGISTER.sub(
            lambda found: (found[1] or "L") + names[found[0]],
            line,
        )


_LINES: Mapping[Stage, Callable[[str], Iterator[str]]] = {
    Stage.TTIR: _mlir,
    Stage.TTGIR: _mlir,
    Stage.LLIR: _llvm,
    Stage.PTX: _ptx,
    Stage.AMDGCN: _amdgcn,
    Stage.SASS: _sass,
}

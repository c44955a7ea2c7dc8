"""A stage's text without what does not matter: names, labels, places, numbering, the order of constants.

Two texts with the same canonical form are the same program but for the naming of its values. Names become
their order of first appearance, so only a renaming one to one makes texts equal. Where a name is more than a
name it stays as it is: registers that the hardware or a caller fills, all of a machine code whose operands
span registers without naming them (SASS), quoted text. A program that an allocator coloured anew may thus
be told apart from its like, but one program is never taken for another.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

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


class _Names(dict[str, str]):
    """New names in order of first appearance; a definition starts a new life of its name."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        super().__init__((name, name) for name in kept)
        self._count = 0

    def define(self, name: str) -> str:
        """A new name for a value that begins to exist here."""
        new = self[name] = f"%{self._count}"
        self._count += 1
        return new

    def __missing__(self, name: str) -> str:
        return self.define(name)


class _Definitions:
    """What a text defines once and uses by name (layouts, metadata): named by first use, spelled out last."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._names: dict[str, str] = {}
        self._open: deque[str] = deque()

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            return name
        if name not in self._names:
            self._names[name] = f"{name[0]}{len(self._names)}"
            self._open.append(name)
        return self._names[name]

    def spelled(self, renamed: Callable[[str], str]) -> Iterator[str]:
        """The definitions of all that was used, and of what they use."""
        while self._open:
            name = self._open.popleft()
            yield f"{self._names[name]} = {renamed(self._known[name])}"


# -- MLIR ------------------------------------------------------------------------------

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_INSIDE = rf'(?:[^()"]|{_QUOTED})*'
_ALIAS = re.compile(r"^(#\w+) = (?!loc\()(.*)$", re.M)
_CONSTANT = re.compile(r"(%[\w$.-]+) = (?:arith\.)?constant (.*)")
_PLACE = re.compile(rf" loc\({_INSIDE}(?:\({_INSIDE}(?:\({_INSIDE}\){_INSIDE})*\){_INSIDE})*\)")
_ALIAS_USE = re.compile(r"#\w+(?![\w.])")
_RESULTS = re.compile(r"%[\w$.:-]+(?:, %[\w$.:-]+)+ = ")
_MLIR = re.compile(
    rf"({_QUOTED})"
    rf"|{_PLACE.pattern}"
    # a name is defined as an argument (`%x: i32`), or by what is assigned to it
    r"|(%[\w$.-]+)(:\d+(?= = )|: ?(?=[!a-z])|(?= = (?!=)))?"
    rf"|({_ALIAS_USE.pattern})"
    r"|(\^\w+)"
)


def _mlir(text: str) -> Iterator[str]:
    layouts = _Definitions(dict(_ALIAS.findall(text)))
    names = _Names()
    constants: dict[str, str] = {}
    behind_results = 0

    def aliased(found: re.Match[str]) -> str:
        return layouts[found[0]]

    def renamed(found: re.Match[str]) -> str:
        quoted, name, defined, alias, block = found.groups()
        if name is not None:
            if defined is None and found.end() > behind_results:
                # spelled where it is used: the order of constants must not number layouts
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
            names, constants = _Names(), {}
        constant = _CONSTANT.fullmatch(line)
        if constant is not None:
            constants[constant[1]] = _PLACE.sub("", constant[2])
        else:
            results = _RESULTS.match(line)
            behind_results = 0 if results is None else results.end()
            yield _MLIR.sub(renamed, line)
    yield from layouts.spelled(lambda body: _MLIR.sub(renamed, body))


# -- LLVM IR ---------------------------------------------------------------------------

_NODE = re.compile(r"^(![0-9]+|attributes #[0-9]+) = (.*)$", re.M)
_DEBUG = re.compile(r"(?:, | )!dbg !\d+")
_TYPE = re.compile(r'^(%(?:"[^"]*"|[\w$.-]+)) = type ', re.M)
_LABEL = re.compile(r'("[^"]*"|[\w$.-]+):')
_LLVM = re.compile(r'(?:, | )!dbg !\d+|\s*; preds = .*|(%(?:"[^"]*"|[\w$.-]+))|"[^"]*"|(![0-9]+\b|#[0-9]+\b)')
_OF_DEBUGGING = ("!DI", "distinct !DI")
_LLVM_DROPPED = (";", "source_filename", "attributes #", "#dbg_", "!llvm.dbg.")


def _llvm(text: str) -> Iterator[str]:
    known = {name.removeprefix("attributes "): body for name, body in _NODE.findall(text)}
    debugging = {name for name, body in known.items() if body.startswith(_OF_DEBUGGING)}
    types = _TYPE.findall(text)
    nodes = _Definitions({name: body for name, body in known.items() if name not in debugging})
    names = _Names(types)
    declared = []

    def renamed(found: re.Match[str]) -> str:
        local, node = found.groups()
        if local is not None:
            return names[local]
        if node is not None:
            return "!DI" if node in debugging else nodes[node]
        return found[0] if found[0][0] == '"' else ""

    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith(_LLVM_DROPPED) or "@llvm.dbg." in line or _NODE.match(line):
            continue
        if '"' not in line:
            line = _DEBUG.sub("", line)
        if line.startswith("define "):
            names = _Names(types)
        label = _LABEL.match(line)
        if label is not None:
            yield f"{names[f'%{label[1]}']}:"
        elif line.startswith("declare "):
            declared.append(line)
        else:
            yield _LLVM.sub(renamed, line)
    yield from (_LLVM.sub(renamed, line) for line in sorted(declared, key=_without_group))
    yield from nodes.spelled(lambda body: _LLVM.sub(renamed, body))


def _without_group(declaration: str) -> str:
    return declaration.partition(" #")[0]


# -- PTX -------------------------------------------------------------------------------

_PTX = re.compile(r"%(?:r[dshq]?|f[dl]?|p|hh?|b|q|rq)\d+\b|\$L_\w+")
_COUNT = re.compile(r"\.reg \.\w+ %\w+<\d+>;")
"""Of virtual registers; a declaration of a named one is kept."""
_MARK = re.compile(r"\$L__(?:tmp|func_)\w*:|\.(?:loc|file)\b")


def _ptx(text: str) -> Iterator[str]:
    names = _Names()
    is_debugging = False
    for raw in text.splitlines():
        line = " ".join(raw.partition("//")[0].split())
        if not line:
            continue
        if is_debugging or line.startswith(".section .debug"):
            is_debugging = line[-1] != "}"
            continue
        if _MARK.match(line) or _COUNT.fullmatch(line):
            continue
        if ".entry " in line or ".func " in line:
            names = _Names()
        yield _PTX.sub(lambda found, names=names: names[found[0]], line)  # type: ignore[misc]


# -- AMDGCN ----------------------------------------------------------------------------

_AMDGCN = re.compile(r"\b([vsa])(?:(\d+)|\[(\d+):(\d+)\])(?!\w)|(\.LBB\w+)")
_LOCAL_LABEL = re.compile(r"\.LBB\w+")
_KERNEL = re.compile(r"^\s*\.amdhsa_kernel\s+(\S+)", re.M)
_FILLED = re.compile(r"^\s*\.amdhsa_user_sgpr_count\s+(\d+)", re.M)
_BY_NUMBER = re.compile(r"^\s*(?:s_swappc|s_call|s_setpc|[vs]_movrel|s_set_gpr_idx)", re.M)
"""Calls, whose convention knows registers by number, and accesses that compute one."""
_AMDGCN_DROPPED = re.compile(r"\.(?:loc|file|cfi_\w+)\b|\.L(?:tmp|func_\w+?)\d+:$")
_SECTION = re.compile(r"\.(?:section|text|data|bss|amdgpu_metadata)\b")
SYSTEM_REGISTERS = 8
"""Scalar registers behind a kernel's user registers that may be filled at its start: three indices of the
workgroup, its information, the offset of scratch, and some to spare."""
INDEX_REGISTERS = 3
"""Vector registers that a kernel starts with, one for each dimension of the work-item's index."""
WIDEST = 64
"""Registers of an operand; what claims to be wider is no register."""


def _amdgcn(text: str) -> Iterator[str]:
    kernels, filled = set(_KERNEL.findall(text)), [int(count) for count in _FILLED.findall(text)]
    renames = bool(filled) and _BY_NUMBER.search(text) is None
    first = {"s": max(filled, default=0) + SYSTEM_REGISTERS, "v": INDEX_REGISTERS, "a": 0}
    in_kernel = is_debugging = False
    names, operands = _Names(), dict[str, str]()

    def renamed(found: re.Match[str]) -> str:
        operand = found[0]
        if operand not in operands:
            operands[operand] = spelled(found)
        return operands[operand]

    def spelled(found: re.Match[str]) -> str:
        kind, one, low, high, label = found.groups()
        if label is not None:
            return names[label]
        start, stop = (one, one) if low is None else (low, high)
        numbers = range(int(start), int(stop) + 1)
        if not (in_kernel and renames) or not 0 < len(numbers) <= WIDEST:
            return found[0]
        return "+".join(f"{kind}{n}" if n < first[kind] else f"{kind}{names[f'{kind}{n}']}" for n in numbers)

    for raw in text.splitlines():
        is_text = '"' in raw
        line = " ".join((raw if is_text else raw.partition(";")[0]).split())
        if not line or _AMDGCN_DROPPED.match(line):
            continue
        if _SECTION.match(line):
            is_debugging = ".debug" in line
        if is_debugging:
            continue
        if line[0] == ".":
            yield line if is_text else _LOCAL_LABEL.sub(lambda found, names=names: names[found[0]], line)  # type: ignore[misc]
            continue
        if line.endswith(":"):
            in_kernel, names, operands = line[:-1] in kernels, _Names(), {}
            yield line
        else:
            yield _AMDGCN.sub(renamed, line)


# -- SASS ------------------------------------------------------------------------------

_SASS = re.compile(r"\.L_\w+")
_ADDRESS = re.compile(r"/\*[0-9a-f]+\*/")


def _sass(text: str) -> Iterator[str]:
    names = _Names()
    is_debugging = False
    for raw in text.splitlines():
        line = " ".join(_ADDRESS.sub("", raw).split())
        if not line or line.startswith("//"):
            continue
        if line.startswith(".section"):
            is_debugging = "debug" in line
        if not is_debugging:
            yield _SASS.sub(lambda found: names[found[0]], line)


_LINES: Mapping[Stage, Callable[[str], Iterable[str]]] = {
    Stage.TTIR: _mlir,
    Stage.TTGIR: _mlir,
    Stage.LLIR: _llvm,
    Stage.PTX: _ptx,
    Stage.AMDGCN: _amdgcn,
    Stage.SASS: _sass,
}

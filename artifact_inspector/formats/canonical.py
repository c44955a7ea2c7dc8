"""A stage's text in canonical form: without names, labels, locations, numbering, or the order of constants.

Two texts with the same canonical form are the same program except for the names of values. Names are replaced by their
order of first appearance, so only a one-to-one renaming makes texts equal. Names with another meaning stay: registers
that the hardware or a caller fills, quoted text, and all of SASS, whose operands span registers without naming them.
Two equal programs with different register allocation may therefore differ in canonical form, but different programs
never have the same form.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from artifact_inspector.model import Stage


def canonical_text(text: str, stage: Stage) -> str:
    r"""The canonical form of a stage's text, one statement per line; for comparison only.

    Example:
        >>> one, other = "add.s32 \t%r7, %r3, %r3;", "add.s32 %r1, %r9, %r9; // sum"
        >>> canonical_text(one, Stage.PTX) == canonical_text(other, Stage.PTX)
        True
    """
    return "\n".join(canonical_lines_of(text, stage))


def canonical_lines_of(text: str, stage: Stage) -> Iterator[str]:
    """The lines of the canonical form, each as soon as it is known."""
    return _LINES.get(stage, _mlir_lines)(text)


class NameNumbering(dict[str, str]):
    """New names in order of first appearance; a definition starts a new name."""

    def __init__(self, unchanged: Iterable[str] = ()) -> None:
        super().__init__((name, name) for name in unchanged)
        self._count = 0

    def define(self, name: str) -> str:
        """A new name for a value defined here."""
        new = self[name] = f"%{self._count}"
        self._count += 1
        return new

    def __missing__(self, name: str) -> str:
        return self.define(name)


class Definitions:
    """Definitions that a text uses by name (layouts, metadata): numbered by first use, printed last."""

    def __init__(self, bodies: Mapping[str, str]) -> None:
        self._bodies = bodies
        self._names: dict[str, str] = {}
        self._pending: deque[str] = deque()

    def __getitem__(self, name: str) -> str:
        if name not in self._bodies:
            return name
        if name not in self._names:
            self._names[name] = f"{name[0]}{len(self._names)}"
            self._pending.append(name)
        return self._names[name]

    def spell_used(self, rename: Callable[[str], str]) -> Iterator[str]:
        """The used definitions, including those that they use."""
        while self._pending:
            name = self._pending.popleft()
            yield f"{self._names[name]} = {rename(self._bodies[name])}"


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


def _mlir_lines(text: str) -> Iterator[str]:
    """MLIR without names and locations; constants are spelled where they are used."""
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


_NODE = re.compile(r"^(![0-9]+|attributes #[0-9]+) = (.*)$", re.M)
_DEBUG = re.compile(r"(?:, | )!dbg !\d+")
_TYPE = re.compile(r'^(%(?:"[^"]*"|[\w$.-]+)) = type ', re.M)
_LABEL = re.compile(r'("[^"]*"|[\w$.-]+):')
_LLVM = re.compile(r'(?:, | )!dbg !\d+|(?<!\s)\s*; preds = .*|(%(?:"[^"]*"|[\w$.-]+))|"[^"]*"|(![0-9]+\b|#[0-9]+\b)')
_DEBUG_PREFIXES = ("!DI", "distinct !DI")
_LLVM_DROPPED = (";", "source_filename", "attributes #", "#dbg_", "!llvm.dbg.")


def _llvm_lines(text: str) -> Iterator[str]:
    """LLVM IR without names, debug metadata, and the numbers of other metadata."""
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


_PTX = re.compile(r"%(?:r[dshq]?|f[dl]?|p|hh?|b|q|rq)\d+\b|\$L_\w+")
_COUNT = re.compile(r"\.reg \.\w+ %\w+<\d+>;")
"""Declarations of virtual registers; a declaration of a named register stays."""
_MARK = re.compile(r"\$L__(?:tmp|func_)\w*:|\.(?:loc|file)\b")

_SECTION = re.compile(r"\.(?:section|text|data|bss|amdgpu_metadata)\b")
_DEBUG_SECTION = re.compile(r'\.section "?\.(?:rela?\.)?(?:nv_)?debug')


def _assembly_lines(text: str, clean: Callable[[str], str], *, has_braces: bool = False) -> Iterator[str]:
    """The cleaned lines outside of debug sections, which end at the next section or, with braces, at their brace."""
    in_debug_section = False
    for raw in text.splitlines():
        line = " ".join(clean(raw).split())
        if line and _SECTION.match(line):
            in_debug_section = _DEBUG_SECTION.match(line) is not None
        if line and not in_debug_section:
            yield line
        elif has_braces and line.endswith("}"):
            in_debug_section = False


def _ptx_lines(text: str) -> Iterator[str]:
    """PTX without the numbers of virtual registers, labels and locations."""
    names = NameNumbering()
    for line in _assembly_lines(text, lambda raw: raw.partition("//")[0], has_braces=True):
        if _MARK.match(line) or _COUNT.fullmatch(line):
            continue
        if ".entry " in line or ".func " in line:
            names = NameNumbering()
        yield _PTX.sub(lambda match, names=names: names[match[0]], line)  # type: ignore[misc]


_AMDGCN = re.compile(r"\b([vsa])(?:(\d{1,4})|\[(\d{1,4}):(\d{1,4})\])(?!\w)|(\.LBB\w+)")
_LOCAL_LABEL = re.compile(r"\.LBB\w+")
_AMD_KERNEL = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\S+)", re.M)
_USER_REGISTER_COUNT = re.compile(r"^[ \t]*\.amdhsa_user_sgpr_count[ \t]+(\d{1,9})\b", re.M)
_BY_NUMBER = re.compile(r"^[ \t]*(?:s_swappc|s_call|s_setpc|[vs]_movrel|s_set_gpr_idx)", re.M)
"""Calls, whose convention fixes register numbers, and accesses with computed register numbers."""
_AMDGCN_DROPPED = re.compile(r"\.(?:loc|file|cfi_\w+)\b|\.L(?:tmp\d+|func_\w+\d):$")
MAX_SYSTEM_REGISTERS = 8
"""Scalar registers after a kernel's user registers that may be initialised: three workgroup IDs, the workgroup
information, the scratch offset, and a reserve."""
WORK_ITEM_REGISTERS = 3
"""Initialised vector registers of a kernel: one per dimension of the work-item ID."""
MAX_OPERAND_REGISTERS = 64
"""Maximum registers of an operand; anything wider is not a register."""


def _amdgcn_lines(text: str) -> Iterator[str]:
    """AMDGCN without labels, locations, and the numbers of registers that only its own code writes."""
    kernels, initialised = (
        set(_AMD_KERNEL.findall(text)),
        [int(count) for count in _USER_REGISTER_COUNT.findall(text)],
    )
    can_rename = bool(initialised) and _BY_NUMBER.search(text) is None
    first = {"s": max(initialised, default=0) + MAX_SYSTEM_REGISTERS, "v": WORK_ITEM_REGISTERS, "a": 0}
    in_kernel = False
    names, operands = NameNumbering(), dict[str, str]()

    def rename_operand(match: re.Match[str]) -> str:
        operand = match[0]
        if operand not in operands:
            operands[operand] = spell_operand(match)
        return operands[operand]

    def spell_operand(match: re.Match[str]) -> str:
        kind, number, low, high, label = match.groups()
        if label is not None:
            return names[label]
        start, stop = (number, number) if low is None else (low, high)
        numbers = range(int(start), int(stop) + 1)
        if not (in_kernel and can_rename) or not 0 < len(numbers) <= MAX_OPERAND_REGISTERS:
            return match[0]
        return "+".join(f"{kind}{n}" if n < first[kind] else f"{kind}{names[f'{kind}{n}']}" for n in numbers)

    for line in _assembly_lines(text, lambda raw: raw if '"' in raw else raw.partition(";")[0]):
        if _AMDGCN_DROPPED.match(line):
            continue
        if line[0] == ".":
            yield line if '"' in line else _LOCAL_LABEL.sub(lambda match, names=names: names[match[0]], line)  # type: ignore[misc]
            continue
        if line.endswith(":"):
            in_kernel, names, operands = line[:-1] in kernels, NameNumbering(), {}
            yield line
        else:
            yield _AMDGCN.sub(rename_operand, line)


_SASS = re.compile(r"\.L_\w+")
_ADDRESS = re.compile(r"/\*[0-9a-f]+\*/")


def _sass_lines(text: str) -> Iterator[str]:
    """SASS without addresses, labels and locations. Registers stay: operands span them without naming them."""
    names = NameNumbering()
    for line in _assembly_lines(text, lambda raw: _ADDRESS.sub("", raw)):
        if not line.startswith("//"):
            yield _SASS.sub(lambda match: names[match[0]], line)


_LINES = {Stage.LLIR: _llvm_lines, Stage.PTX: _ptx_lines, Stage.AMDGCN: _amdgcn_lines, Stage.SASS: _sass_lines}

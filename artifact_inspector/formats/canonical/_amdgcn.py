"""Canonical AMDGCN: without labels, locations, and the numbers of registers that only its own code writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._numbering import NameNumbering

_AMDGCN = re.compile(r"\b([vsa])(?:(\d{1,4})|\[(\d{1,4}):(\d{1,4})\])(?!\w)|(\.LBB\w+)")
_LOCAL_LABEL = re.compile(r"\.LBB\w+")
_KERNEL = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\S+)", re.M)
_USER_REGISTER_COUNT = re.compile(r"^[ \t]*\.amdhsa_user_sgpr_count[ \t]+(\d{1,9})\b", re.M)
_BY_NUMBER = re.compile(r"^[ \t]*(?:s_swappc|s_call|s_setpc|[vs]_movrel|s_set_gpr_idx)", re.M)
"""Calls, whose convention fixes register numbers, and accesses with computed register numbers."""
_AMDGCN_DROPPED = re.compile(r"\.(?:loc|file|cfi_\w+)\b|\.L(?:tmp\d+|func_\w+\d):$")
_SECTION = re.compile(r"\.(?:section|text|data|bss|amdgpu_metadata)\b")
MAX_SYSTEM_REGISTERS = 8
"""Scalar registers after a kernel's user registers that may be initialised: three workgroup IDs, the workgroup
information, the scratch offset, and a reserve."""
WORK_ITEM_REGISTERS = 3
"""Initialised vector registers of a kernel: one per dimension of the work-item ID."""
MAX_OPERAND_REGISTERS = 64
"""Maximum registers of an operand; anything wider is not a register."""


def canonical_lines(text: str) -> Iterator[str]:
    kernels, initialised = (set(_KERNEL.findall(text)), [int(count) for count in _USER_REGISTER_COUNT.findall(text)])
    can_rename = bool(initialised) and _BY_NUMBER.search(text) is None
    first = {"s": max(initialised, default=0) + MAX_SYSTEM_REGISTERS, "v": WORK_ITEM_REGISTERS, "a": 0}
    in_kernel = in_debug_section = False
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

    for raw in text.splitlines():
        is_quoted = '"' in raw
        line = " ".join((raw if is_quoted else raw.partition(";")[0]).split())
        if not line or _AMDGCN_DROPPED.match(line):
            continue
        if _SECTION.match(line):
            in_debug_section = ".debug" in line
        if in_debug_section:
            continue
        if line[0] == ".":
            yield line if is_quoted else _LOCAL_LABEL.sub(lambda match, names=names: names[match[0]], line)  # type: ignore[misc]
            continue
        if line.endswith(":"):
            in_kernel, names, operands = line[:-1] in kernels, NameNumbering(), {}
            yield line
        else:
            yield _AMDGCN.sub(rename_operand, line)

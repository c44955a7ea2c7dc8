"""Canonical AMDGCN: without labels, locations, and the numbers of registers that only its own code writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.formats.canonical._names import Names

_AMDGCN = re.compile(r"\b([vsa])(?:(\d{1,4})|\[(\d{1,4}):(\d{1,4})\])(?!\w)|(\.LBB\w+)")
_LOCAL_LABEL = re.compile(r"\.LBB\w+")
_KERNEL = re.compile(r"^[ \t]*\.amdhsa_kernel[ \t]+(\S+)", re.M)
_FILLED = re.compile(r"^[ \t]*\.amdhsa_user_sgpr_count[ \t]+(\d{1,9})\b", re.M)
_BY_NUMBER = re.compile(r"^[ \t]*(?:s_swappc|s_call|s_setpc|[vs]_movrel|s_set_gpr_idx)", re.M)
"""Calls, whose convention fixes register numbers, and accesses with computed register numbers."""
_AMDGCN_DROPPED = re.compile(r"\.(?:loc|file|cfi_\w+)\b|\.L(?:tmp\d+|func_\w+\d):$")
_SECTION = re.compile(r"\.(?:section|text|data|bss|amdgpu_metadata)\b")
SYSTEM_REGISTERS = 8
"""Scalar registers after a kernel's user registers that may be initialised: three workgroup IDs, the
workgroup information, the scratch offset, and a reserve."""
INDEX_REGISTERS = 3
"""Initialised vector registers of a kernel: one per dimension of the work-item ID."""
WIDEST = 64
"""Maximum registers of an operand; anything wider is not a register."""


def lines(text: str) -> Iterator[str]:
    kernels, filled = set(_KERNEL.findall(text)), [int(count) for count in _FILLED.findall(text)]
    renames = bool(filled) and _BY_NUMBER.search(text) is None
    first = {"s": max(filled, default=0) + SYSTEM_REGISTERS, "v": INDEX_REGISTERS, "a": 0}
    in_kernel = is_debugging = False
    names, operands = Names(), dict[str, str]()

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
            in_kernel, names, operands = line[:-1] in kernels, Names(), {}
            yield line
        else:
            yield _AMDGCN.sub(renamed, line)

"""Parts of AMDGCN text besides the code: a kernel's initial registers and its arguments.

**Source** LLVM, "User Guide for AMDGPU Backend": "Initial Kernel Execution State", "Kernel Argument Segment", "Code
Object V3 and Above Metadata", "Preloaded Kernel Arguments".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from artifact_inspector.model.text import parse_integer


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument in the kernel argument segment."""

    offset: int
    size: int
    kind: str
    """`global_buffer`, `by_value`, `hidden_block_count_x` …"""

    @property
    def is_hidden(self) -> bool:
        """Whether the runtime provides it."""
        return self.kind.startswith("hidden")


@dataclass(frozen=True, slots=True)
class InitialState:
    """The initial state of a kernel."""

    arguments: tuple[Argument, ...]
    wavefront_size: int
    """Lanes per wavefront."""
    kernarg_register: int | None
    """First scalar register of the pair that holds the segment's address."""
    preloaded_arguments: tuple[int, int, int] = (0, 0, 0)
    """Preloaded dwords of the kernel argument segment: how many, offset of the first, first scalar register."""
    workgroup_registers: Mapping[int, str] = field(default_factory=dict)
    """Axis → scalar register with the workgroup ID."""
    lds_bytes: int = 0
    """Bytes of LDS."""
    max_threads: int = 0
    """Maximum threads of a workgroup."""
    skips_preload_prologue: bool = False
    """True if the hardware preloads arguments: it skips the prologue for hardware that does not."""


_USER_REGISTERS = (
    ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1),
)  # fmt: skip
"""User registers in allocation order, with their sizes."""
_DIRECTIVE = re.compile(r"^[ \t]*\.amdhsa_(\w+)[ \t]+(\d{1,18})\b", re.M)
_FIELD = re.compile(r"\.(offset|size|value_kind):\s*(\S+)")
_WAVE = re.compile(r"\.wavefront_size:\s*(32|64)\b")
_THREADS = re.compile(r"\.max_flat_workgroup_size:\s*(\d{1,9})\b")


def read_initial_state(text: str, kernel: str) -> InitialState:
    """The initial state of a kernel, from its descriptor and the metadata at the end of the text."""
    directives = _directives(text, kernel)
    next_register, kernarg = 0, None
    for name, count in _USER_REGISTERS:
        if directives.get(f"user_sgpr_{name}"):
            kernarg = next_register if name == "kernarg_segment_ptr" else kernarg
            next_register += count
    length, start = (directives.get(f"user_sgpr_kernarg_preload_{name}", 0) for name in ("length", "offset"))
    preloaded = (length, start, next_register)
    next_register = directives.get("user_sgpr_count", next_register + length)
    workgroup = {}
    for axis, name in enumerate("xyz"):
        if directives.get(f"system_sgpr_workgroup_id_{name}", 1 if name == "x" else 0):
            workgroup[axis] = f"s{next_register}"
            next_register += 1
    wavefront_match, threads_match = _WAVE.search(text), _THREADS.search(text)
    return InitialState(
        _arguments(text, kernel),
        int(wavefront_match[1]) if wavefront_match is not None else 32 if directives.get("wavefront_size32") else 64,
        kernarg,
        preloaded,
        workgroup,
        directives.get("group_segment_fixed_size", 0),
        int(threads_match[1]) if threads_match is not None else 0,
        length > 0,
    )


def _directives(text: str, kernel: str) -> dict[str, int]:
    start = text.find(f".amdhsa_kernel {kernel}")
    stop = text.find(".end_amdhsa_kernel", start)
    if start < 0:
        return {"user_sgpr_kernarg_segment_ptr": 1, "user_sgpr_count": 2}
    return {name: int(value) for name, value in _DIRECTIVE.findall(text[start : stop if stop > 0 else len(text)])}


def _arguments(text: str, kernel: str) -> tuple[Argument, ...]:
    """The arguments of a kernel, whose name follows its list of arguments.

    If no list has the name, the first one is used.
    """
    lists = text[text.find(".amdgpu_metadata") :].split(".args:")[1:]
    named = [candidate for candidate in lists if re.search(rf"\.name:\s*'?{re.escape(kernel)}'?\s", candidate)]
    arguments: list[Argument] = []
    for argument_list in (named or lists)[:1]:
        for item in re.split(r"\n\s*- ", argument_list.partition(".group_segment_fixed_size")[0]):
            attributes = dict(_FIELD.findall(item))
            offset, size = (parse_integer(attributes.get(name, "")) for name in ("offset", "size"))
            if offset is not None and size is not None:
                arguments.append(Argument(offset, size, attributes.get("value_kind", "")))
    return tuple(arguments)

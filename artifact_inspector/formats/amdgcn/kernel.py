"""Parts of AMDGCN text besides the code: a kernel's initial registers and its arguments.

**Source** LLVM, "User Guide for AMDGPU Backend": "Initial Kernel Execution State", "Kernel Argument Segment",
"Code Object V3 and Above Metadata", "Preloaded Kernel Arguments".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from artifact_inspector.model.text import integer


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
class Beginning:
    """The initial state of a kernel."""

    arguments: tuple[Argument, ...]
    wave: int
    """Lanes per wavefront."""
    kernarg: int | None
    """First scalar register of the pair that holds the segment's address."""
    preloaded: tuple[int, int, int] = (0, 0, 0)
    """Preloaded dwords of the kernel argument segment: how many, offset of the first, first scalar
    register."""
    workgroup: Mapping[int, str] = field(default_factory=dict)
    """Axis → scalar register with the workgroup ID."""
    shared: int = 0
    """Bytes of LDS."""
    threads: int = 0
    """Maximum threads of a workgroup."""
    starts_behind: bool = False
    """True if the hardware preloads arguments: it skips the prologue for hardware that does not."""


_USER = (
    ("private_segment_buffer", 4),
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("flat_scratch_init", 2),
    ("private_segment_size", 1),
)
"""User registers in allocation order, with their sizes."""
_DIRECTIVE = re.compile(r"^[ \t]*\.amdhsa_(\w+)[ \t]+(\d{1,18})\b", re.M)
_FIELD = re.compile(r"\.(offset|size|value_kind):\s*(\S+)")
_WAVE = re.compile(r"\.wavefront_size:\s*(32|64)\b")
_THREADS = re.compile(r"\.max_flat_workgroup_size:\s*(\d{1,9})\b")


def read_beginning(text: str, kernel: str) -> Beginning:
    """The initial state of a kernel, from its descriptor and the metadata at the end of the text.

    Args:
        text: of the whole file.
        kernel: name of the function.
    """
    told = _directives(text, kernel)
    at, kernarg = 0, None
    for name, count in _USER:
        if told.get(f"user_sgpr_{name}"):
            kernarg = at if name == "kernarg_segment_ptr" else kernarg
            at += count
    length, start = (told.get(f"user_sgpr_kernarg_preload_{name}", 0) for name in ("length", "offset"))
    preloaded = (length, start, at)
    at = told.get("user_sgpr_count", at + length)
    workgroup = {}
    for axis, name in enumerate("xyz"):
        if told.get(f"system_sgpr_workgroup_id_{name}", 1 if name == "x" else 0):
            workgroup[axis] = f"s{at}"
            at += 1
    wave, threads = _WAVE.search(text), _THREADS.search(text)
    return Beginning(
        _arguments(text, kernel),
        int(wave[1]) if wave is not None else 32 if told.get("wavefront_size32") else 64,
        kernarg,
        preloaded,
        workgroup,
        told.get("group_segment_fixed_size", 0),
        int(threads[1]) if threads is not None else 0,
        length > 0,
    )


def _directives(text: str, kernel: str) -> dict[str, int]:
    start = text.find(f".amdhsa_kernel {kernel}")
    stop = text.find(".end_amdhsa_kernel", start)
    if start < 0:
        return {"user_sgpr_kernarg_segment_ptr": 1, "user_sgpr_count": 2}
    return {
        name: int(value) for name, value in _DIRECTIVE.findall(text[start : stop if stop > 0 else len(text)])
    }


def _arguments(text: str, kernel: str) -> tuple[Argument, ...]:
    """The arguments of a kernel, whose name follows its list of arguments.

    If no list has the name, the first one is used.
    """
    parts = text[text.find(".amdgpu_metadata") :].split(".args:")[1:]
    named = [part for part in parts if re.search(rf"\.name:\s*'?{re.escape(kernel)}'?\s", part)]
    chosen = (named or parts)[:1]
    found: list[Argument] = []
    for part in chosen:
        for item in re.split(r"\n\s*- ", part.partition(".group_segment_fixed_size")[0]):
            given = dict(_FIELD.findall(item))
            offset, size = (integer(given.get(name, "")) for name in ("offset", "size"))
            if offset is not None and size is not None:
                found.append(Argument(offset, size, given.get("value_kind", "")))
    return tuple(found)

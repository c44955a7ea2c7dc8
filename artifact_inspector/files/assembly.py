"""PTX as machine code: the only place that runs Triton's own ptxas, where a cache has no cubin."""

from __future__ import annotations

import re
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.tools import find_in_package, private_copy, run_tool

__all__ = ["assemble"]

_IN_WHEEL = ("backends/nvidia/bin", "third_party/cuda/bin")
_NAMES = ("ptxas-blackwell", "ptxas")
_TARGET = re.compile(r"^\s*\.target\s+sm_(\d{1,4})([a-z]*)\b", re.M | re.A)
_NEWEST = 100
"""Architectures from here on have a ptxas of their own in Triton's wheel."""


def assemble(ptx: str) -> bytes:
    """The cubin that Triton's ptxas makes of a PTX text.

    Raises:
        CacheError: there is no ptxas, the text names no target, or ptxas refuses it.
    """
    target = _TARGET.search(ptx)
    if target is None:
        raise CacheError("not assembled: the PTX names no target.", "Compile the kernel again.")
    tool = _find(int(target[1]))
    if tool is None:
        raise CacheError(
            "not assembled: there is no cubin, and no ptxas was found to make one of the PTX.",
            "Install Triton, which brings one, or keep the cubin.",
        )
    with private_copy(ptx.encode(), "kernel.ptx") as source:
        made = source.with_suffix(".cubin")
        name = f"sm_{target[1]}{target[2]}"
        # as Triton calls it
        command = [str(tool), "-lineinfo", f"--gpu-name={name}", str(source), "-o", str(made)]
        try:
            status, said = run_tool(command, 1 << 20, errors=True)
        except OSError as error:
            raise CacheError(f"not assembled: {tool} did not start ({error}).") from error
        if status or not made.is_file():
            why = " ".join(said.decode(errors="replace").replace(str(source), "the PTX").split())[:200]
            raise CacheError(f"not assembled: {tool.name} refuses this PTX ({why}).")
        return made.read_bytes()


def _find(arch: int) -> Path | None:
    for root in find_in_package("triton"):
        for where in _IN_WHEEL:
            for name in _NAMES if arch >= _NEWEST else _NAMES[::-1]:
                path = Path(root, where, name)
                if path.is_file():
                    return path
    return None

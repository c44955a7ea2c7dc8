"""Writes the binary in a C file of `triton.tools.compile` as an entry of a cache.

Such a file has the bytes of one cubin or hsaco, and the shared memory and warps of its launch. It has no IR.

Source: triton/tools/extra/cuda/compile.c and triton/tools/extra/hip/compile.c.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

SUFFIX = ".c"
NAME = re.compile(r".+\.[0-9a-f]{8}_[0-9cd]*\.c")
"""The names that `triton.tools.compile` gives."""
_BYTES = re.compile(r"unsigned char (CUBIN|HSACO)_NAME\[\d+\] = \{([0-9a-fx, \n]*)\}")
_SYMBOL = re.compile(r'ModuleGetFunction\(&\w+, \w+, "([\w.$]+)"')
_LAUNCH = re.compile(r"LaunchKernel\(\w+, gX, gY, gZ, (\d+) \* \w+, 1, 1, (\d+),")


def is_c_source(head: bytes, name: str) -> bool:
    """Whether a file with this beginning and name may be one."""
    return name.endswith(SUFFIX) and b"clang-format off" in head and b"#include" in head


def write_binary(text: str, name: str, into: Path, spend: Callable[[int], None]) -> bool:
    """Write the binary with its metadata; False if there is none.

    Args:
        spend: called with the size of the binary; raises where it is too large.
    """
    match = _BYTES.search(text)
    if match is None:
        return False
    content = bytes.fromhex("".join(match[2].replace("0x", "").replace(",", " ").split()))
    spend(len(content))
    stem = name.removesuffix(SUFFIX).partition(".")[0]
    (into / f"{stem}.{match[1].lower()}").write_bytes(content)
    symbol, launch = _SYMBOL.search(text), _LAUNCH.search(text)
    if symbol is not None and launch is not None:
        metadata = {"name": symbol[1], "num_warps": int(launch[1]), "shared": int(launch[2])}
        (into / f"{stem}.json").write_text(json.dumps(metadata), encoding="utf-8")
    return True

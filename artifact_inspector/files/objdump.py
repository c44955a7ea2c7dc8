"""Disassembles an hsaco into AMDGCN text, for entries that only keep the binary.

`llvm-objdump` runs like the tool of `disassembly`. Its output is converted to the form of LLVM's own
assembly, with labels for branches and `.loc` for lines, so that one parser reads both.

Source: LLVM, llvm-objdump (`--line-numbers`) and the comments of AMDGPUInstPrinter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from artifact_inspector.errors import CacheError
from artifact_inspector.files.disassembly import Disassembler, binary_arch, disassemble, find_disassembler
from artifact_inspector.files.tools import find_on_path, private_copy, run_tool

_NAME = "llvm-objdump"
_NEWEST_LLVM, _OLDEST_LLVM = 24, 13
_REMEDY = f"Add to PATH an {_NAME} from ROCm, or from an LLVM release that supports the target."
_SYMBOL = re.compile(r"[0-9a-f]{16} <([^>]+)>:")
_LINE = re.compile(r"; (\S.*):(\d+)(?: \(discriminator \d+\))?$")
_CODE = re.compile(
    r"\s+([a-z](?:.*\S)?)\s*// ([0-9A-F]+): [0-9A-F ]*[0-9A-F](?:\s*<([^>+]+)(?:\+0x([0-9a-f]+))?>)?\s*$"
)
_PADDING = ("s_code_end", "s_nop")


def binary_disassembler(tool: Disassembler | None = None) -> Callable[[str, bytes], str]:
    """A disassembler by suffix of the binary: nvdisasm for a cubin, llvm-objdump for an hsaco.

    Args:
        tool: the nvdisasm; by default the result of `find_disassembler`.
    """
    nvdisasm, objdump = tool or find_disassembler(), find_objdump()
    return lambda suffix, binary: (
        disassemble(binary, nvdisasm) if suffix == "cubin" else disassemble_hsaco(binary, objdump)
    )


def find_objdump() -> Path | None:
    """The newest `llvm-objdump` on PATH, else ROCm's."""
    path = find_on_path([_NAME, *(f"{_NAME}-{version}" for version in range(_NEWEST_LLVM, _OLDEST_LLVM, -1))])
    if path is not None:
        return path
    roots = (Path(os.environ.get("ROCM_PATH", "")), Path("/opt/rocm"))
    candidates = (root / "llvm" / "bin" / _NAME for root in roots if root.is_absolute())
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def disassemble_hsaco(hsaco: bytes, tool: Path | None) -> str:
    """AMDGCN text of an hsaco's code, without padding.

    Raises:
        CacheError: there is no tool, the content is not an hsaco, or the tool rejects it.
    """
    if tool is None:
        raise CacheError(f"not disassembled: no {_NAME} was found.", _REMEDY)
    arch = binary_arch("hsaco", hsaco)
    with private_copy(hsaco, "kernel.hsaco") as path:
        try:
            # An instruction has at least 4 bytes and a line of about 90 characters.
            status, output = run_tool([str(tool), "-d", "-l", str(path)], 64 * len(hsaco) + (1 << 20))
        except CacheError as error:
            raise CacheError(f"not disassembled: {error.message}", _REMEDY) from error
    text = "".join(_assembly_text(output.decode(errors="replace").splitlines(), arch))
    if status or "\n\ts_endpgm" not in text:
        raise CacheError(f"not disassembled: {tool} does not read this {arch} hsaco.", _REMEDY)
    return text


def _assembly_text(lines: list[str], arch: str) -> Iterator[str]:
    starts: dict[str, int] = {}
    branch_targets: set[int] = set()
    symbol, function_index = "", 0
    rows: list[tuple[int, str, int | None] | str] = []
    for line in lines:
        if (named := _SYMBOL.match(line)) is not None:
            end = f".Lfunc_end{function_index}:\n" if symbol else ""
            symbol, function_index = named[1], function_index + bool(symbol)
            rows.append(f"{end}\t.type\t{symbol},@function\n{symbol}:\n")
        elif (placed := _LINE.match(line)) is not None:
            rows.append(f"\x00{placed[1]}\x00{placed[2]}")
        elif (code := _CODE.match(line)) is not None and not code[1].startswith(_PADDING):
            address = int(code[2], 16)
            starts.setdefault(symbol, address)
            target = None
            if code[3] is not None and code[1].startswith(("s_branch", "s_cbranch", "s_call")):
                target = starts.get(code[3], address) + int(code[4] or "0", 16)
                branch_targets.add(target)
            rows.append((address, code[1], target))
    yield f'\t.amdgcn_target "amdgcn-amd-amdhsa--{arch}"\n\t.text\n'
    files: dict[str, int] = {}
    for row in rows:
        if isinstance(row, tuple):
            address, text, target = row
            if address in branch_targets:
                yield f".L{address:x}:\n"
            yield f"\t{text}\n" if target is None else f"\t{text.split()[0]} .L{target:x}\n"
        elif row.startswith("\x00"):
            path, number = row[1:].split("\x00")
            if path not in files:
                files[path] = len(files) + 1
                posix_path = PurePosixPath(path)
                yield f'\t.file\t{files[path]} "{posix_path.parent}" "{posix_path.name}"\n'
            yield f"\t.loc\t{files[path]} {number} 0\n"
        else:
            yield row
    yield f".Lfunc_end{function_index}:\n"

"""Assembles PTX with Triton's own ptxas, where a cache has no cubin.

Cubins are stored in the user's cache directory, never beside the entry.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files.artifact import Artifact, File, MemoryFile
from artifact_inspector.files.assembler_directives import refuse_directives
from artifact_inspector.files.reader import read_content, read_stage
from artifact_inspector.files.tools import WHEEL_DIRECTORIES, package_directories, private_copy, run_tool
from artifact_inspector.files.writer import user_cache, write_private

_NAMES = ("ptxas-blackwell", "ptxas")
_VERSION = re.compile(r"^[ \t]*\.version[ \t]+(\d{1,2})\.\d", re.M | re.A)
_TARGET = re.compile(r"^[ \t]*\.target[ \t]+sm_(\d{1,4})([a-z]*)\b", re.M | re.A)
_BLACKWELL = 100
"""Architectures from this one on use a separate ptxas in Triton's wheel."""
_OF_CUDA_13 = 9
"""PTX ISA versions from this one on need the ptxas of CUDA 13. Triton 3.9 writes them for sm_90 too
(`get_ptxas` in triton/backends/nvidia/compiler.py): it writes the ISA version of the ptxas it uses."""


def with_cubin(artifact: Artifact) -> Artifact:
    """The kernel with a cubin assembled from its PTX; the same kernel if it needs none.

    Raises:
        CacheError: the PTX cannot be read, no ptxas is found, the text names no target, or ptxas rejects it.
    """
    if "cubin" in artifact.files or "ptx" not in artifact.files:
        return artifact
    ptx = read_stage(artifact, "ptx").source.text
    fused = artifact.metadata.get("enable_fp_fusion") is not False
    name = f"{artifact.stem}.cubin"
    cache_directory = _cubin_directory(ptx, fused=fused)
    cubin: File
    if cache_directory is None:
        cubin = MemoryFile(name, assemble(ptx, fused=fused))
    else:
        cubin = cache_directory / name
        if not cubin.is_file():
            write_private(cubin, assemble(ptx, fused=fused))
            # without a writable cache directory, keep the cubin in memory
            cubin = cubin if cubin.is_file() else MemoryFile(name, assemble(ptx, fused=fused))
    return replace(artifact, files={**artifact.files, "cubin": cubin}, is_assembled=True)


def _cubin_directory(ptx: str, *, fused: bool) -> Path | None:
    """The cache directory for the cubin of a text by the installed ptxas; None without a home directory."""
    tool, root = _tool_for(ptx), user_cache()
    try:
        tool_stat = tool.stat()
    except OSError:
        return None
    if root is None:
        return None
    digest = hashlib.sha256(ptx.encode(errors="surrogatepass"))
    digest.update(f"{tool} {tool_stat.st_size} {tool_stat.st_mtime_ns} {fused}".encode(errors="surrogatepass"))
    return root / "cubin" / digest.hexdigest()


def assemble(ptx: str, *, fused: bool = True) -> bytes:
    """The cubin that Triton's ptxas assembles from a PTX text.

    Args:
        fused: False for a kernel compiled without fused multiply-adds.

    Raises:
        CacheError: no ptxas is found, the text names no target, or ptxas rejects it.
    """
    tool, target = _tool_for(ptx), _TARGET.search(ptx)
    refuse_directives(ptx, "This PTX")
    assert target is not None
    with private_copy(ptx.encode(errors="surrogatepass"), "kernel.ptx") as source:
        cubin = source.with_suffix(".cubin")
        name = f"sm_{target[1]}{target[2]}"
        # the options that Triton uses
        options = ["-lineinfo", *([] if fused else ["--fmad=false"]), f"--gpu-name={name}"]
        command = [str(tool), *options, str(source), "-o", str(cubin)]
        try:
            status, output = run_tool(command, 1 << 20, errors=True)
        except OSError as error:
            raise CacheError(f"not assembled: {tool} did not start ({error}).") from error
        if status or not cubin.is_file():
            reason = " ".join(output.decode(errors="replace").replace(str(source), "the PTX").split())[:200]
            raise CacheError(f"not assembled: {tool.name} rejects this PTX ({reason}).")
        return read_content(cubin)


def _tool_for(ptx: str) -> Path:
    """The ptxas for the target that a text names.

    Raises:
        CacheError: it names no target, or no ptxas is found.
    """
    target = _TARGET.search(ptx)
    if target is None:
        raise CacheError("not assembled: the PTX names no target.", "Compile the kernel again.")
    version = _VERSION.search(ptx)
    is_new = int(target[1]) >= _BLACKWELL or (version is not None and int(version[1]) >= _OF_CUDA_13)
    tool = _find_ptxas(is_new=is_new)
    if tool is None:
        problem = "not assembled: there is no cubin, and no ptxas was found to assemble the PTX."
        raise CacheError(problem, "Install Triton, which includes ptxas, or keep the cubin.")
    return tool


def _find_ptxas(*, is_new: bool) -> Path | None:
    names, roots = _NAMES if is_new else _NAMES[::-1], package_directories("triton")
    paths = (Path(root, directory, name) for root in roots for directory in WHEEL_DIRECTORIES for name in names)
    return next((path for path in paths if path.is_file()), None)

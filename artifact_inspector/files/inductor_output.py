"""Finds the kernels in wrappers of Inductor, also where tlparse wrote them: `inductor_output_code_….txt` or `.html`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from artifact_inspector.errors import UsageError
from artifact_inspector.files.reader import read_user_text
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.files.writer import write_text

OUTPUT_CODE = re.compile(r"inductor_output_code.*\.(?:txt|html)")
_TAG = re.compile(r"<[^>]*>")
_ORIGIN = re.compile(
    r"# Topologically Sorted Source Nodes: \[[^\]\n]*\], Original ATen: \[(?P<operations>[^\]\n]*)\]\n"
    r"(?:[ \t]*#[^\n]*\n)*[ \t]*(?P<kernel>\w+) = async_compile\.triton\("
)
"""Source: torch/_inductor/codegen/simd.py, the comments before the kernels of a wrapper."""
_MAX_WRAPPERS = 500


def kernel_sources(text: str) -> Iterator[tuple[str, str]]:
    """Name and source of each `async_compile.triton(NAME, SOURCE, …)` of a wrapper, which is not run."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "triton":
            texts = [x.value for x in node.args[:2] if isinstance(x, ast.Constant) and isinstance(x.value, str)]
            if len(texts) == 2 and texts[0].isidentifier():
                yield texts[0], texts[1]


def find_origin(wrapper: str, kernel: str) -> str | None:
    """The operations that a kernel of a wrapper was fused from, as its comment names them: `aten.exp, aten.add`."""
    return next((match["operations"] for match in _ORIGIN.finditer(wrapper) if match["kernel"] == kernel), None)


def read_wrapper_of(file: str) -> str | None:
    """The text of the wrapper whose comment names a kernel's file as its path; None if there is none beside it.

    Inductor writes both below one directory, each in a folder of its own.
    """
    path, mark = Path(file), f"# kernel path: {file}\n"
    if "torchinductor" not in file or not path.is_file():
        return None
    for other in islice(sorted(path.parent.parent.glob("*/*.py")), _MAX_WRAPPERS):
        try:
            text = read_user_text(other)
        except OSError:
            continue
        if mark in text:
            return text
    return None


@cache
def _directory() -> Any:
    return scratch_directory()


def kernel_paths(path: Path) -> list[str]:
    """`FILE.py:KERNEL` of each kernel in a file or a directory of tlparse; empty for another path.

    Raises:
        UsageError: a file cannot be read.
    """
    files = sorted(path.rglob("inductor_output_code*")) if path.is_dir() else [path]
    places: list[str] = []
    for file in files:
        if OUTPUT_CODE.fullmatch(file.name) and file.is_file():
            try:
                text = read_user_text(file)
            except OSError as error:
                raise UsageError(f"{file} cannot be read: {error.strerror or error}.") from None
            if file.suffix == ".html":
                from html import unescape  # which takes 1.3 ms of every start

                text = unescape(_TAG.sub("", text))
            wrapper = Path(_directory().name, f"output_code_{len(places)}.py")
            names = [name for name, _ in kernel_sources(text)]
            write_text(wrapper, text)
            places += [f"{wrapper}:{name}" for name in names]
    return places

"""Finds the source files named by a cache in the working tree, and reads their lines."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.inductor_output import find_origin, kernel_sources, read_wrapper_of
from artifact_inspector.files.reader import read_content, read_stage
from artifact_inspector.model import Frame
from artifact_inspector.model.location import base_name

SourceLineReader = Callable[[str], str | None]
"""`file.py:40` → the text of that line; None if it may differ from the compiled source."""
MAX_SOURCE_BYTES = 4 << 20
"""Maximum bytes of a source file."""
_ORIGINAL = re.compile(r"\s*# src\[([^\[\]]+:\d+(?:-\d+)?)\]: (.+)")
_INDUCTOR = "torch._inductor"
MAX_DECORATOR_LINES = 12
"""Lines after a kernel's location, that of its first decorator, in which its `def` must be."""

_POSITION = re.compile(r'loc\("([^"]+)":(\d+):(\d+)\b')


def source_line_reader(
    location: Frame | None, kernel: str, root: Path, artifact: Artifact | None = None
) -> SourceLineReader:
    """A reader for lines of the kernel's source file as it is in the working tree, else at its recorded path.

    Lines are returned only if the file fits the positions that the kernel's files name. The first one of a file that
    does not fit is replaced with a warning, if the file defines the kernel at all.
    """
    text = "" if location is None else read_python_source(location.file, root) or ""
    name, warnings = "" if location is None else base_name(location.file), []
    if location is not None and not (text and is_unchanged(text, location, kernel, artifact)):
        is_edited = any(line.lstrip().startswith(f"def {kernel}(") for line in text.splitlines())
        recorded = "" if artifact is None else read_recorded_source(location.file) or ""
        wrapped = "" if artifact is None else dict(kernel_sources(_read_wrapper(artifact, root))).get(kernel, "")
        fitting = [text for text in (recorded, wrapped) if text and is_unchanged(text, location, kernel, artifact)]
        if fitting:
            text = fitting[0]
        else:
            text, warnings = "", [f"({name} differs from the compiled source: not quoted)"] * is_edited
    lines, origin = text.splitlines(), ""
    if location is not None and _INDUCTOR in text:
        wrapper = read_wrapper_of(location.file) or ("" if artifact is None else _read_wrapper(artifact, root))
        operations = find_origin(wrapper, kernel)
        origin = f"  # from {operations}" if operations else ""

    def read_line(source_line: str) -> str | None:
        file, _, number = source_line.partition(" ")[0].rpartition(":")
        if file == name and warnings:
            return warnings.pop()
        at = int(number) if number.isdecimal() and len(number) < 9 else 0
        text = lines[at - 1].strip() if file == name and 0 < at <= len(lines) else ""
        return f"{_find_original(lines, at) or text}{origin}" if text else None

    return read_line


def _read_wrapper(artifact: Artifact, root: Path) -> str:
    """The wrapper of Inductor that `compile` took the kernel from; empty if it is not below the root."""
    file, _, name = (artifact.requested_kernel or "").rpartition(":")
    return read_python_source(file, root) or "" if name else ""


def _find_original(lines: list[str], at: int) -> str | None:
    """The line of Helion's program that a generated line comes from: the nearest comment `# src[FILE:LINE]: CODE`.

    Source: github.com/pytorch/helion, the comments of its generated Triton code.
    """
    for line in reversed(lines[:at]):
        if match := _ORIGINAL.match(line):
            return f"{match[2].strip()}  # {match[1]}"
        if line.lstrip().startswith(("def ", "@")):
            break
    return None


def is_unchanged(text: str, location: Frame, kernel: str, artifact: Artifact | None = None) -> bool:
    """Whether a source file fits what was compiled.

    The `def` of the kernel must be at the line that the kernel's files name, and a token must begin at each position
    that its TTIR names. Edits that move no token are not noticed.
    """
    nearby_lines = text.splitlines()[max(0, location.line - 1) : location.line + MAX_DECORATOR_LINES]
    if not any(line.lstrip().startswith(f"def {kernel}(") for line in nearby_lines):
        return False
    positions = frozenset() if artifact is None else _read_positions(artifact, location.file)
    # columns count from 0 until Triton 3.8, and from 1 since
    return not positions or any(positions <= _token_starts(text, base) for base in (0, 1))


def _read_positions(artifact: Artifact, file: str) -> frozenset[tuple[int, int]]:
    """Line and column of each expression of a source file that the TTIR of a kernel names."""
    try:
        text = read_stage(artifact, "ttir").source.text
    except (CacheError, UsageError):
        return frozenset()
    return frozenset((int(line), int(column)) for name, line, column in _POSITION.findall(text) if name == file)


@lru_cache(maxsize=8)
def _token_starts(text: str, base: int) -> frozenset[tuple[int, int]]:
    """Line and column of each token, in bytes of UTF-8 as Python's parser counts; none if the text is no Python."""
    lines = text.splitlines()
    try:
        starts = [token.start for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return frozenset()
    return frozenset((n, len(lines[n - 1][:at].encode()) + base) for n, at in starts if 0 < n <= len(lines))


def find_source(file: str, root: Path) -> str | None:
    """The path of a source file relative to the root, with `/`; None if it does not exist.

    A cache names files by their paths at compile time. The longest suffix of that path that is a file here is used.
    """
    components = [component for component in file.replace("\\", "/").split("/") if component not in ("", ".")]
    if ".." in components:
        return None
    for start in range(len(components)):
        relative_path = "/".join(components[start:])
        try:
            if (root / relative_path).is_file():
                return relative_path
        except OSError:
            return None
    return None


def read_python_source(file: str, root: Path) -> str | None:
    """The text of a source file named by a cache; None if it does not exist.

    A cache is untrusted: files that are not Python are not read.
    """
    relative_path = find_source(file, root) if file.endswith(".py") else None
    if relative_path is None:
        return None
    try:
        return read_content(root / relative_path, MAX_SOURCE_BYTES).decode(errors="replace")
    except (OSError, CacheError):
        return None


def read_recorded_source(file: str) -> str | None:
    """The text of a Python file at its absolute path in a cache; None if it does not exist. Check it before use."""
    return read_python_source(file, Path("/")) if file.startswith("/") and Path(file).is_file() else None

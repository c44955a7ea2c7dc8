"""Find the kernels in the text of a Python file without importing it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from hashlib import blake2b

OPTIONS_COMMENT = "# inspect-kernel:"
"""Starts a comment above a kernel with options of `compile` for it."""


@dataclass(frozen=True, slots=True)
class SourceKernel:
    """A function under `@triton.jit`."""

    name: str
    def_line: int
    """1-based line of its `def`."""
    first_line: int
    """1-based line of its first decorator."""
    last_line: int
    digest: str
    """Digest of its text from the `def` on, which is what Triton compiles."""
    compile_options: str = ""
    """Options in the comment above it; empty without one."""


def find_kernels(text: str) -> tuple[SourceKernel, ...] | None:
    r"""The kernels of a file's text, in its order; None if the text is not valid Python.

    Example:
        >>> (kernel,) = find_kernels("# inspect-kernel: -t sm_90\n@triton.jit\ndef k(x): pass\n")
        >>> kernel.name, kernel.def_line, kernel.compile_options
        ('k', 3, '-t sm_90')
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = text.splitlines()
    return tuple(
        _make_kernel(node, lines)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(_is_jit(decorator) for decorator in node.decorator_list)
    )


def _make_kernel(node: ast.FunctionDef, lines: list[str]) -> SourceKernel:
    top = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    last = node.end_lineno or node.lineno
    body = "\n".join(line.rstrip() for line in lines[node.lineno - 1 : last])
    comment_line = lines[top - 2].strip() if top >= 2 else ""
    compile_options = (
        comment_line.removeprefix(OPTIONS_COMMENT).strip() if comment_line.startswith(OPTIONS_COMMENT) else ""
    )
    digest = blake2b(body.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return SourceKernel(node.name, node.lineno, top, last, digest, compile_options)


def _is_jit(decorator: ast.expr) -> bool:
    """`@triton.jit`, `@jit`, `@triton.jit(…)`, `@gluon.jit`."""
    decorator_name = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = decorator_name.attr if isinstance(decorator_name, ast.Attribute) else getattr(decorator_name, "id", "")
    return name == "jit"

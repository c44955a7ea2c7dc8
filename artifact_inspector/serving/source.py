"""Find the kernels in the text of a Python file without importing it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from hashlib import blake2b

MARK = "# inspect-kernel:"
"""Starts a comment above a kernel with options of `compile` for it."""


@dataclass(frozen=True, slots=True)
class WrittenKernel:
    """A function under `@triton.jit`."""

    name: str
    first: int
    """1-based line of its `def`."""
    top: int
    """1-based line of its first decorator."""
    last: int
    digest: str
    """Digest of its text from the `def` on, which is what Triton compiles."""
    asked: str = ""
    """Options in the comment above it; empty without one."""


def find_kernels(text: str) -> tuple[WrittenKernel, ...] | None:
    r"""The kernels of a file's text, in its order; None if the text is not valid Python.

    Example:
        >>> (kernel,) = find_kernels("# inspect-kernel: -t sm_90\n@triton.jit\ndef k(x): pass\n")
        >>> kernel.name, kernel.first, kernel.asked
        ('k', 3, '-t sm_90')
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = text.splitlines()
    return tuple(
        _written(node, lines)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any(_is_jit(one) for one in node.decorator_list)
    )


def _written(node: ast.FunctionDef, lines: list[str]) -> WrittenKernel:
    top = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    last = node.end_lineno or node.lineno
    body = "\n".join(line.rstrip() for line in lines[node.lineno - 1 : last])
    above = lines[top - 2].strip() if top >= 2 else ""
    asked = above.removeprefix(MARK).strip() if above.startswith(MARK) else ""
    digest = blake2b(body.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return WrittenKernel(node.name, node.lineno, top, last, digest, asked)


def _is_jit(decorator: ast.expr) -> bool:
    """`@triton.jit`, `@jit`, `@triton.jit(…)`, `@gluon.jit`."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name == "jit"

"""Turn a compiler's exception into an error message, with the line of the kernel and a remedy.

Source: triton/compiler/errors.py, `CompilationError` (2.1 to 3.9): `src` is the text of the function from its `def` on,
    `node` a node of its syntax tree, `error_message` the message.
"""

from __future__ import annotations

import inspect
import re
from itertools import takewhile
from typing import Any

from artifact_inspector.compiling.signature import MISSING, read_literal
from artifact_inspector.errors import CompileError, InspectorError, UsageError

_MODULE_DUMPS = ("module {", "module attributes", "#loc", "#blocked", '"builtin.module"')
"""First lines of the IR module that some Triton errors append to their message."""


def describe_error(error: BaseException) -> dict[str, Any]:
    """`message`, `remedy` and `kind` of a row: `is_usage_error` for a wrong request, else `refused`."""
    if isinstance(error, InspectorError):
        kind = "usage" if isinstance(error, UsageError) else "refused"
        return {"message": error.message, "remedy": error.remedy, "kind": kind}
    return {"message": f"{type(error).__name__}: {error}", "remedy": _find_remedy(error), "kind": "refused"}


def to_compile_error(error: Exception, function: Any) -> InspectorError:
    """The error of a compile with its place in the kernel's file.

    Args:
        function: the kernel as a JITFunction; None for a saved IR text.
    """
    if isinstance(error, InspectorError):
        return error
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    located_errors = [cause for cause in chain if getattr(cause, "node", None) is not None]
    last = chain[-1]
    stated = getattr(last, "error_message", None)
    message_lines = _unquote(str(last if stated is None else stated)).strip().splitlines()
    sentence = "\n".join(takewhile(lambda line: not line.lstrip().startswith(_MODULE_DUMPS), message_lines)).strip()
    if "CompilationError" not in type(last).__name__:
        sentence = f"{type(last).__name__}: {sentence}" if sentence else type(last).__name__
    if located_errors:
        # the innermost error is nearest to the cause: for a helper function it has the helper's line
        sentence = f"{_source_location(located_errors[-1], function)}{sentence}{_source_line(located_errors[-1])}"
    return CompileError(sentence, _find_remedy(error))


def _source_location(error: Any, function: Any) -> str:
    """`file:line:column: ` of an error that has a node; empty if its function cannot be identified."""
    module = inspect.getmodule(getattr(function, "fn", None))
    for candidate in (function, *([] if module is None else vars(module).values())):
        if getattr(candidate, "src", None) != error.src or not inspect.isfunction(getattr(candidate, "fn", None)):
            continue
        lines, first = inspect.getsourcelines(candidate.fn)
        begins = next(at for at, line in enumerate(lines) if line.lstrip().startswith("def "))
        indent = len(lines[begins]) - len(lines[begins].lstrip())
        column = error.node.col_offset + indent + 1
        return f"{candidate.fn.__code__.co_filename}:{first + begins + error.node.lineno - 1}:{column}: "
    return ""


def _source_line(error: Any) -> str:
    lines = error.src.splitlines()
    at = error.node.lineno - 1
    return f"\n  {lines[at].strip()}" if 0 <= at < len(lines) else ""


def _unquote(text: str) -> str:
    """Rewrite `KeyError('no')`, as Triton prints an exception it caught, as `KeyError: no`."""
    match = re.fullmatch(r"(\w+)\((['\"].*['\"])\)", text.strip(), re.S)
    exception_text = MISSING if match is None else read_literal(match[2])
    return f"{match[1]}: {exception_text}" if match is not None and isinstance(exception_text, str) else text


def _find_remedy(error: BaseException) -> str | None:
    if "TRITON_HIP_LLD_PATH" in str(error):
        return (
            "Triton before 3.5 links AMD kernels with LLVM's linker: install it (the package lld), or name "
            "an ld.lld in TRITON_HIP_LLD_PATH."
        )
    return None

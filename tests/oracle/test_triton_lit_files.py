"""Triton's own lit tests: every file with a `tt.func` is read.

The files are not kept here: set TRITON_SOURCE to a checkout of github.com/triton-lang/triton, or of a fork.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache

SOURCE = os.environ.get("TRITON_SOURCE", "")
FUNCTION = re.compile(r"^\s*tt\.func\b", re.M)
MAX_FUNCTIONS_WITH_PROBLEMS = 0.01
"""Some tests hold syntax that the compiler is to reject, or regions written on one line."""


@pytest.mark.long
@pytest.mark.skipif(not SOURCE, reason="Needs TRITON_SOURCE, a checkout of Triton.")
def test_every_lit_file_with_a_function_reads() -> None:
    files = [file for file in sorted(Path(SOURCE).rglob("*.mlir")) if FUNCTION.search(file.read_text(errors="replace"))]
    assert len(files) > 50
    functions = problems = 0
    for file in files:
        kernels = list(inspect_cache(open_cache(file)))
        text = re.sub(r"//.*", "", file.read_text(errors="replace"))
        declared = len(re.findall(r"^\s*tt\.func private [^{]*\)(?: -> [^{\n]*)?$", text, re.M))
        assert len(kernels) >= len(FUNCTION.findall(text)) - declared, file
        assert all(kernel.stages for kernel in kernels), file
        functions += len(kernels)
        problems += sum(bool(kernel.problems) for kernel in kernels)
    assert problems <= MAX_FUNCTIONS_WITH_PROBLEMS * functions

"""Triton's own MLIR parser judges what is read of the files that the same version wrote."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from saved import FIXTURES, Saved, saved_kernels

from artifact_inspector.model import Stage

triton = pytest.importorskip("triton")
IMPLICIT = {"builtin.module", "tt.func", "ttg.warp_specialize.partitions"}
"""Operations that the reader keeps as modules, functions and partitions."""

FILES = [
    pytest.param(kernel, stage, id=f"{kernel.path}.{stage.value}")
    for kernel in saved_kernels()
    if kernel.version == triton.__version__
    for stage in (Stage.TTIR, Stage.TTGIR)
]


@pytest.fixture(scope="module")
def judge() -> Any:
    library = pytest.importorskip("triton._C.libtriton")
    context = library.ir.context()
    library.ir.load_dialects(context)
    library.nvidia.load_dialects(context)
    library.amd.load_dialects(context)

    def operations(path: str) -> list[tuple[str, int]]:
        module = library.ir.parse_mlir_module(path, context)
        module.context = context
        found: list[tuple[str, int]] = []
        module.walk(lambda operation: found.append((operation.get_name(), operation.get_num_results())))
        return found

    return operations


def test_there_is_something_to_judge() -> None:
    if not FILES:
        pytest.skip(f"no fixture of Triton {triton.__version__}")
    assert len(FILES) > 10


@pytest.mark.parametrize(("kernel", "stage"), FILES)
def test_operations_and_functions_are_those_that_triton_finds(kernel: Saved, stage: Stage, judge: Any) -> None:
    module = kernel.module(stage)
    ours = Counter(x.opcode for function in module.functions for x in function.instructions)
    judged = judge(str(FIXTURES / kernel.path / kernel.artifact.display_path(stage.value)))
    assert sum(name == "tt.func" for name, _ in judged) == len(module.functions)
    theirs = Counter(name for name, _ in judged if name not in IMPLICIT)
    # The yield of a region without results is not printed.
    unprinted = theirs["scf.yield"] - ours["scf.yield"]
    assert 0 <= unprinted <= theirs["scf.if"] * 2 + theirs["scf.for"]
    ours["scf.yield"] += unprinted
    assert ours == theirs


@pytest.mark.parametrize(("kernel", "stage"), FILES)
def test_results_are_those_that_triton_finds(kernel: Saved, stage: Stage, judge: Any) -> None:
    ours = Counter(
        (x.opcode, len(x.operands.results))
        for function in kernel.module(stage).functions
        for x in function.instructions
        if not x.opcode.startswith("scf.")
    )
    judged = judge(str(FIXTURES / kernel.path / kernel.artifact.display_path(stage.value)))
    assert ours == Counter((n, r) for n, r in judged if n not in IMPLICIT and not n.startswith("scf."))


@pytest.mark.parametrize(
    "kernel", [k for k in saved_kernels() if k.target.startswith("gfx")], ids=lambda kernel: kernel.path
)
def test_amdgcn_metadata_agrees_with_the_attributes(kernel: Saved) -> None:
    module, text = kernel.module(Stage.AMDGCN), kernel.text(Stage.AMDGCN)
    assert module.attributes["target"] == kernel.target
    for key in ("vgpr_count", "sgpr_count", "vgpr_spill_count", "wavefront_size"):
        found = re.findall(rf"^\s+\.{key}:\s+(\d+)", text, re.M)
        assert module.attributes.get(key) == (found[0] if found else None)

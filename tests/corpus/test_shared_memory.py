"""Every saved kernel's bill of shared memory against the metadata that its compiler wrote."""

from __future__ import annotations

import pytest
from saved import Saved, saved_kernels

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage, find_shared_memory_usage
from artifact_inspector.facts.modules import read_module
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage

KERNELS = [pytest.param(kernel, id=kernel.path) for kernel in saved_kernels()]


def bill(kernel: Saved) -> SharedMemoryUsage:
    artifact = kernel.artifact
    module = read_module(artifact, Stage.TTGIR, [])
    assert module is not None
    language = format_of(Stage.TTGIR)
    codes = [FunctionCode(f, module, language) for f in module.functions]
    found = find_shared_memory_usage(codes, artifact.shared_bytes, artifact.triton_version)
    assert found is not None
    return found


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_bill_adds_up_to_the_metadata(kernel: Saved) -> None:
    found = bill(kernel)
    assert found.peak == found.declared, found.note


@pytest.mark.parametrize("kernel", KERNELS)
def test_entries_that_are_live_together_do_not_overlap(kernel: Saved) -> None:
    placed = [e for e in bill(kernel).entries if e.offset is not None and e.bytes and not e.is_scratch]
    for i, one in enumerate(placed):
        for other in placed[i + 1 :]:
            assert one.offset is not None
            assert other.offset is not None
            meets = one.first <= other.last and other.first <= one.last
            overlaps = one.offset < other.offset + (other.bytes or 0) and other.offset < one.offset + (one.bytes or 0)
            assert not (meets and overlaps), (one, other)

"""The kernels of which no files are saved are compiled here, and every one of them is understood."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from artifact_inspector.compiling.ask.compile import compile_reference
from artifact_inspector.compiling.reference import DEMO_KERNELS, REFERENCE_KERNELS
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.model import Stage

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")

NEW = tuple(name for name in REFERENCE_KERNELS if name not in DEMO_KERNELS)
VERDICTS = {
    "attention_backward": "pipelined(1)",
    "gemv_int4": "interleaved",
    "gemv_loads_first": "clustered",
    "grouped_gemm": "pipelined(2)",
    "histogram": "serial",
    "linear_scan": "serial",
    "matmul_fp8": "pipelined(2)",
    "matmul_persistent": "partly pipelined(2)",
    "matmul_persistent_descriptor": "pipelined(2)",
    "matmul_scaled": "partly pipelined(1)",
    "matmul_splitk": "pipelined(2)",
    "matmul_warp_specialised": "warp-specialised",
}
"""In the PTX of sm_90, alike with Triton 3.6 and 3.9."""


@pytest.mark.exhaustive
def test_every_kernel_of_the_suite_is_read_whole(tmp_path):
    # one test for all: under xdist each worker would compile them again
    rows = compile_reference(NEW, ["sm_90"], tmp_path)
    assert {row.kernel: row.message for row in rows} == dict.fromkeys(NEW)
    facts = {one.artifact.directory: one for one in inspect_cache(open_cache(tmp_path))}
    kernels = {row.kernel: facts[row.directory.name] for row in rows}
    assert {name: kernel.principal_region.phrase for name, kernel in kernels.items()} == VERDICTS
    for name, kernel in kernels.items():
        assert not kernel.problems, name
        assert not kernel.contradictions, name
        assert not [stage.stage for stage in kernel.stages.values() if stage.unknown], name
        assert kernel.last.stage is Stage.PTX
        assert kernel.resources.registers.value, name
        assert kernel.bill.is_accounted, name


@pytest.mark.long
def test_what_a_kernel_needs_is_said_and_missed_where_it_is_not(tmp_path):
    from artifact_inspector.kernels.matmul_fp8 import REFERENCE

    assert REFERENCE.cuda_since == 89
    refused, made = compile_reference(["matmul_fp8"], ["sm_80", "sm_89"], tmp_path)
    assert "fp8e4nv not supported" in refused.message
    assert made.directory is not None

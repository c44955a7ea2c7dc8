"""Measurements made by hand of a saved kernel, and those kept from a real GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from saved import ROOT
from version1_keys import upgrade_keys

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.measuring.measurement import Bench, MeasuredDevice, Measurement

MEASURED = ROOT / "docs" / "measurements"
A_KERNEL = ROOT / "fixtures" / "3.6.0" / "sm_90" / "softmax"
H200 = MeasuredDevice(
    date="2026-11-21",
    name="NVIDIA H200",
    target=parse_target("sm_90"),
    multiprocessors=132,
    cache_bytes=60 << 20,
    driver="580.0",
    torch="2.11.0",
    triton="3.6.0",
)

METRICS = {
    "instructions": "smsp__inst_executed.sum",
    "tensor_instructions": "sm__inst_executed_pipe_tensor.sum",
    "global_load_instructions": "smsp__inst_executed_op_global_ld.sum",
    "global_store_instructions": "smsp__inst_executed_op_global_st.sum",
    "async_copy_instructions": "smsp__inst_executed_op_ldgsts.sum",
    "matrix_load_instructions": "smsp__inst_executed_op_ldsm.sum",
    "shared_load_instructions": "smsp__inst_executed_op_shared_ld.sum",
    "shared_store_instructions": "smsp__inst_executed_op_shared_st.sum",
    "shared_atomic_instructions": "smsp__inst_executed_op_shared_atom.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_wavefronts_ideal": "memory_l1_wavefronts_shared_ideal",
}
"""Counter of a launch run on paper → the metric of Nsight Compute that it means."""


def a_measurement(**changes: Any) -> Measurement:
    """A softmax of 512 MiB that reads and writes at half the bandwidth of an H200."""
    told: dict[str, Any] = {
        "kernel": "softmax",
        "size": "131072×1024 fp16",
        "config": {},
        "milliseconds": 512 * 2**20 / 2.4e12 * 1e3,
        "spread": (0.2, 0.3),
        "deviation": 2e-4,
        "tolerance": 2e-3,
        "flop": 5 * 2**27,
        "bytes": 512 * 2**20,
        "unit": "fp32",
        "message": None,
        "facts": inspect_artifact(open_cache(A_KERNEL).entries[0]),
    }
    return Measurement(**{**told, **changes})


def a_bench(*rows: Measurement) -> Bench:
    """Rows measured on an H200."""
    return Bench(H200, rows or (a_measurement(),))


def kept(path: Path) -> Any:
    """A document of `bench --json` that was kept."""
    return upgrade_keys(json.loads(path.read_text(encoding="utf-8")))

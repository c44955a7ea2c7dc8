"""Options of a compile, from its metadata."""

from __future__ import annotations

from collections.abc import Mapping

from artifact_inspector.vocabulary.fact import Value

WARP_COUNT = "num_warps"
SHARED_OPTIONS = (WARP_COUNT, "num_ctas", "num_stages")
"""Options that every back end and every version of Triton has."""

OPTIONS = (
    *SHARED_OPTIONS, "cluster_dims", "maxnreg", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint",
    "instruction_sched_variant", "num_buffers_warp_spec", "num_consumer_groups", "reg_dec_producer",
    "reg_inc_consumer", "enable_fp_fusion", "allow_flush_denorm", "enable_warp_specialization", "enable_persistent",
    "launch_pdl", "launch_cooperative_grid", "ptx_options", "ir_override", "instrumentation_mode", "debug",
)  # fmt: skip
"""Keys of the metadata that are options of the compile, in any version of Triton."""


def read_options(metadata: Mapping[str, object]) -> dict[str, Value]:
    """Those of `OPTIONS` that the metadata has."""
    options: dict[str, Value] = {}
    for key in OPTIONS:
        value = metadata.get(key)
        if isinstance(value, list | tuple):
            options[key] = tuple(str(item) for item in value)
        elif isinstance(value, bool | int | float | str):
            options[key] = value
    return options

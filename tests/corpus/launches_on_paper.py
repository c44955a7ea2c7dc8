"""Small launches of kernels, and what Triton's interpreter touches in them.

`LAUNCHES` are of kernels that are saved for NVIDIA and AMD; `SWEPT` has those that are compiled anew, too.

`TRITON_INTERPRET=1 python tests/corpus/launches_on_paper.py > tests/oracle/interpreted.json` asks the interpreter.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
INTERPRETED = ROOT / "tests" / "oracle" / "interpreted.json"


class Paper(NamedTuple):
    """A launch: tensors by shape and type, with values where they are given; numbers as they are."""

    module: str
    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]
    blocks: Mapping[str, tuple[int, ...]] = {}
    """Of arguments that the host makes descriptors of."""


def half(*shape: int) -> tuple[tuple[int, ...], str]:
    return shape, "fp16"


def full(*shape: int) -> tuple[tuple[int, ...], str]:
    return shape, "fp32"


LAUNCHES = {
    "softmax": Paper(
        "kernels.softmax",
        (8, 1, 1),
        {"x_ptr": half(8, 1008), "y_ptr": half(8, 1008), "stride_x": 1008, "stride_y": 1008, "n_cols": 992},
    ),
    "layer_norm": Paper(
        "kernels.layer_norm",
        (4, 1, 1),
        {
            "x_ptr": half(4, 1008), "y_ptr": half(4, 1008), "weight_ptr": half(1008), "bias_ptr": half(1008),
            "stride": 1008, "n_cols": 1008, "eps": 1e-5,
        },
    ),
    "matmul_grouped": Paper(
        "kernels.matmul_grouped",
        (6, 1, 1),
        {
            "a_ptr": half(192, 96), "b_ptr": half(96, 144), "c_ptr": half(192, 144), "M": 192, "N": 144,
            "K": 96, "stride_am": 96, "stride_bk": 144, "stride_cm": 144,
        },
    ),
    "matmul_square": Paper(
        "kernels.matmul_square",
        (4, 1, 1),
        {
            "a_ptr": full(256, 96), "b_ptr": full(96, 256), "c_ptr": full(256, 256), "M": 256, "N": 256,
            "K": 96, "stride_am": 96, "stride_bk": 256, "stride_cm": 256,
        },
    ),
    "fused_linear": Paper(
        "kernels.fused_linear",
        (4, 1, 1),
        {
            "x_ptr": half(256, 96), "w_ptr": half(256, 96), "b_ptr": half(256), "y_ptr": half(256, 256),
            "M": 256, "N": 256, "K": 96,
        },
    ),
    "flash_attention": Paper(
        "kernels.flash_attention",
        (2, 2, 1),
        {
            "q_ptr": half(2, 256, 16), "k_ptr": half(2, 256, 16), "v_ptr": half(2, 256, 16),
            "o_ptr": half(2, 256, 16), "stride_head": 4096, "stride_seq": 16, "seq_len": 256, "scale": 0.125,
        },
    ),
    "gemv_splitk": Paper(
        "kernels.gemv_splitk",
        (2, 2, 1),
        {"a_ptr": half(512), "b_ptr": half(512, 512), "c_ptr": full(512), "stride_bk": 512},
    ),
    "copy": Paper("sources.copy", (3, 1, 1), {"x_ptr": half(4000), "y_ptr": half(4000), "n": 2900}),
    "persistent_matmul": Paper(
        "sources.persistent_matmul",
        (3, 1, 1),
        {"a_ptr": half(64, 48), "b_ptr": half(48, 64), "c_ptr": half(64, 64), "M": 64, "N": 64, "K": 48},
    ),
    "two_loops": Paper(
        "sources.two_loops", (3, 1, 1), {"x_ptr": half(3, 1024), "y_ptr": half(3, 1024), "n_cols": 1024, "eps": 1e-5}
    ),
    "early_return": Paper(
        "sources.early_return", (8, 1, 1), {"x_ptr": full(5, 256), "y_ptr": full(5, 256), "n_rows": 5, "n_cols": 256}
    ),
}  # fmt: skip

STARTS = (0, 5, 5, 135, 136, 200, 264, 265, 265, 265, 265, 290, 296, 297, 298, 299, 300)
SWEPT = {
    **LAUNCHES,
    "gemv_int4": Paper(
        "kernels.gemv_int4",
        (4, 4, 1),
        {
            "a_ptr": half(256), "w_ptr": ((32, 512), "int32"), "scale_ptr": half(2, 512), "zero_ptr": half(2, 512),
            "c_ptr": full(512), "N": 512,
        },
    ),
    "linear_scan": Paper(
        "kernels.linear_scan",
        (3, 1, 1),
        {"a_ptr": full(3, 2000), "x_ptr": full(3, 2000), "y_ptr": full(3, 2000), "length": 2000},
    ),
    "histogram": Paper(
        "kernels.histogram",
        (2, 1, 1),
        {"x_ptr": ((20000,), "uint8"), "counts_ptr": ((256,), "int32"), "length": 20000},
    ),
    "matmul_splitk": Paper(
        "kernels.matmul_splitk",
        (6, 4, 1),
        {"a_ptr": half(96, 304), "b_ptr": half(304, 144), "c_ptr": full(96, 144), "M": 96, "N": 144, "K": 304},
    ),
    "attention_backward": Paper(
        "kernels.attention_backward",
        (2, 2, 1),
        {
            **{f"{name}_ptr": half(2, 112, 64) for name in ("q", "k", "v", "do")},
            **{f"{name}_ptr": full(2, 112) for name in ("lse", "delta")},
            **{f"{name}_ptr": half(2, 112, 64) for name in ("dq", "dk", "dv")},
            "stride_head": 7168, "seq_len": 112, "scale": 0.125,
        },
    ),
    "matmul_persistent": Paper(
        "kernels.matmul_persistent",
        (3, 1, 1),
        {"a_ptr": half(192, 80), "b_ptr": half(80, 272), "c_ptr": half(192, 272), "M": 192, "N": 272, "K": 80,
         "programs": 3},
    ),
    "grouped_gemm": Paper(
        "kernels.grouped_gemm",
        (5, 1, 1),
        {
            "a_ptr": half(300, 80), "b_ptr": half(16, 80, 144), "c_ptr": half(300, 144),
            "starts_ptr": ((17,), "int32", STARTS), "groups": 16, "N": 144, "K": 80, "programs": 5,
        },
    ),
    "matmul_fp8": Paper(
        "kernels.matmul_fp8",
        (2, 2, 1),
        {
            "a_ptr": ((192, 160), "fp8e4nv"), "b_ptr": ((144, 160), "fp8e4nv"), "c_ptr": ((192, 144), "bf16"),
            "scale": 0.5, "M": 192, "N": 144, "K": 160,
        },
    ),
    "matmul_descriptor": Paper(
        "kernels.matmul_descriptor",
        (3, 3, 1),
        {"a_ptr": half(160, 80), "b_ptr": half(144, 80), "c_ptr": half(160, 144), "M": 160, "N": 144, "K": 80},
    ),
    "matmul_persistent_descriptor": Paper(
        "kernels.matmul_persistent_descriptor",
        (3, 1, 1),
        {"a_desc": half(192, 80), "b_desc": half(272, 80), "c_desc": half(192, 272), "M": 192, "N": 272, "K": 80,
         "programs": 3},
        {"a_desc": (128, 64), "b_desc": (128, 64), "c_desc": (128, 128)},
    ),
    "matmul_warp_specialised": Paper(
        "kernels.matmul_warp_specialised",
        (3, 2, 1),
        {"a_desc": half(160, 80), "b_desc": half(144, 80), "c_desc": half(160, 144), "K": 80},
        {"a_desc": (64, 64), "b_desc": (128, 64), "c_desc": (64, 128)},
    ),
    "matmul_scaled": Paper(
        "kernels.matmul_scaled",
        (2, 3, 1),
        {
            "a_ptr": ((256, 128), "uint8"), "a_scale_ptr": ((256, 8), "uint8"), "b_ptr": ((192, 128), "uint8"),
            "b_scale_ptr": ((192, 8), "uint8"), "c_ptr": ((256, 192), "bf16"), "M": 256, "N": 192, "K": 256,
        },
    ),
}  # fmt: skip


def ranges(touched: Any) -> list[list[int]]:
    """Bytes that were touched, in a row as [first, behind the last]."""
    import numpy as np

    at = np.flatnonzero(touched)
    if not at.size:
        return []
    cuts = np.flatnonzero(np.diff(at) > 1)
    starts, stops = at[np.r_[0, cuts + 1]], at[np.r_[cuts, at.size - 1]] + 1
    return [[int(a), int(b)] for a, b in zip(starts, stops, strict=True)]


_TORCH = {"fp16": "float16", "fp32": "float32", "bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn"}


def interpret(paper: Paper) -> dict[str, dict[str, list[list[int]]]]:
    """Bytes of each tensor that Triton's interpreter reads and writes."""
    import numpy as np
    import torch
    from triton.runtime import interpreter
    from triton.tools.tensor_descriptor import TensorDescriptor

    reference = importlib.import_module(paper.module).REFERENCE
    given, touched = {}, {}
    for name, value in paper.arguments.items():
        if isinstance(value, tuple):
            shape, kind, *values = value
            given[name] = torch.zeros(shape, dtype=getattr(torch, _TORCH.get(kind, kind)))
            for held in values:
                given[name].copy_(torch.tensor(held).reshape(shape))
            size = given[name].numel() * given[name].element_size()
            touched[name] = (given[name].data_ptr(), np.zeros(size, bool), np.zeros(size, bool))
            if name in paper.blocks:
                given[name] = TensorDescriptor.from_tensor(given[name], list(paper.blocks[name]))
        else:
            given[name] = value

    def note(pointers: Any, mask: Any, writes: bool) -> None:
        size = pointers.get_element_ty().primitive_bitwidth // 8
        for address in np.ravel(pointers.data)[np.ravel(mask.data).astype(bool)].tolist():
            for start, read, written in touched.values():
                if start <= address < start + len(read):
                    (written if writes else read)[address - start : address - start + size] = True

    builder = interpreter.InterpreterBuilder
    load, store = builder.create_masked_load, builder.create_masked_store
    atomic = builder.create_atomic_rmw

    def spy_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        note(ptrs, mask, False)
        return load(self, ptrs, mask, *rest, **more)

    def spy_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        note(ptrs, mask, True)
        return store(self, ptrs, value, mask, *rest, **more)

    def spy_atomic(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **more: Any) -> Any:
        note(ptr, mask, True)
        return atomic(self, op, ptr, val, mask, *rest, **more)

    builder.create_masked_load, builder.create_masked_store = spy_load, spy_store
    builder.create_atomic_rmw = spy_atomic
    ones = {name: 1 for name, text in reference.signature.items() if text.endswith(":1")}
    reference.kernel[paper.grid](**{**ones, **given}, **reference.constexprs)
    builder.create_masked_load, builder.create_masked_store, builder.create_atomic_rmw = load, store, atomic
    return {name: {"read": ranges(read), "written": ranges(written)} for name, (_, read, written) in touched.items()}


if __name__ == "__main__":
    import sys

    sys.path[:0] = [str(ROOT), str(ROOT / "fixtures")]
    rows = [f" {json.dumps(name)}: {json.dumps(interpret(paper))}" for name, paper in SWEPT.items()]
    print("{\n" + ",\n".join(rows) + "\n}")

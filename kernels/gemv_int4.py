"""A matrix-vector product with 4-bit weights, split along K: `c += a @ ((w - zero) * scale)`.

Eight weights along K share an `int32`; a scale and a zero point belong to a group of rows. Each program
takes two blocks of rows, one after the other: load, unpack and scale, multiply and reduce. The programs
of one column block add up in `c` by atomics.
"""

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from artifact_inspector.compiling.reference import Reference, Workload

if TYPE_CHECKING:
    import torch

PER_WORD = 8


@triton.jit
def gemv_int4_kernel(
    a_ptr,
    w_ptr,
    scale_ptr,
    zero_ptr,
    c_ptr,
    N,
    GROUP_SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    first_k = tl.program_id(1) * 2 * BLOCK_K
    offs_k = first_k + tl.arange(0, BLOCK_K)
    shift = ((offs_k % 8) * 4)[:, None]
    # the eight rows of a word load the same word, each for its own four bits
    w_ptrs = w_ptr + (offs_k // 8)[:, None] * N + offs_n[None, :]

    a = tl.load(a_ptr + offs_k).to(tl.float32)
    w = tl.load(w_ptrs, eviction_policy="evict_first")
    # a block lies in one group: one row of scales does for all of it
    group = first_k // GROUP_SIZE
    scale = tl.load(scale_ptr + group * N + offs_n).to(tl.float32)
    zero = tl.load(zero_ptr + group * N + offs_n).to(tl.float32)
    weights = (((w >> shift) & 0xF).to(tl.float32) - zero[None, :]) * scale[None, :]
    acc = tl.sum(a[:, None] * weights, axis=0)

    w_ptrs += BLOCK_K // 8 * N
    a = tl.load(a_ptr + offs_k + BLOCK_K).to(tl.float32)
    w = tl.load(w_ptrs, eviction_policy="evict_first")
    group = (first_k + BLOCK_K) // GROUP_SIZE
    scale = tl.load(scale_ptr + group * N + offs_n).to(tl.float32)
    zero = tl.load(zero_ptr + group * N + offs_n).to(tl.float32)
    weights = (((w >> shift) & 0xF).to(tl.float32) - zero[None, :]) * scale[None, :]
    acc += tl.sum(a[:, None] * weights, axis=0)

    tl.atomic_add(c_ptr + offs_n, acc, sem="relaxed")


def pack(weights: "torch.Tensor") -> "torch.Tensor":
    """Eight consecutive rows in one word, the first in its lowest bits.

    Args:
        weights: (K, N), integers from 0 to 15; K a multiple of 8.

    Returns:
        (K // 8, N), int32.
    """
    import torch

    k, n = weights.shape
    nibbles = weights.to(torch.int32).reshape(k // PER_WORD, PER_WORD, n)
    words = torch.zeros_like(nibbles[:, 0])
    for place in range(PER_WORD):
        words |= nibbles[:, place] << (4 * place)
    return words


def gemv_int4(
    a: "torch.Tensor",
    words: "torch.Tensor",
    scales: "torch.Tensor",
    zeros: "torch.Tensor",
    group_size: int,
    out: "torch.Tensor | None" = None,
    **config: int,
) -> "torch.Tensor":
    """A @ ((w - zero) * scale) for one row, accumulated in float32 in no fixed order.

    Args:
        a: (1, K), float16; K a multiple of two blocks.
        words: (K // 8, N), as `pack` makes them; N a multiple of a block.
        scales: (K // group_size, N), float16.
        zeros: (K // group_size, N), float16.
        group_size: rows that share a scale and a zero point; a multiple of a block's rows.
        out: (1, N), float32, to add to; zeros without it.
        config: blocks, warps and stages other than those of `REFERENCE`.

    Returns:
        (1, N), float32.
    """
    k, n = a.shape[1], words.shape[1]
    c = a.new_zeros((1, n)).float() if out is None else out
    options = REFERENCE.launch_options({"GROUP_SIZE": group_size, **config})
    grid = (n // options["BLOCK_N"], k // (2 * options["BLOCK_K"]))
    gemv_int4_kernel[grid](a, words, scales, zeros, c, n, **options)
    return c


def workload(device: str = "cuda", k: int = 16384, n: int = 32768, group_size: int = 128) -> Workload:
    """A layer of a large language model in 4 bits, for one token: bound by memory."""
    import torch

    a = torch.randn((1, k), device=device, dtype=torch.float16)
    # random words are random weights
    words = torch.randint(-(2**31), 2**31 - 1, (k // PER_WORD, n), device=device, dtype=torch.int32)
    scales = torch.rand((k // group_size, n), device=device, dtype=torch.float16) * 0.1
    zeros = torch.randint(0, 16, (k // group_size, n), device=device).to(torch.float16)
    c = torch.zeros((1, n), device=device)

    def expected():
        places = torch.arange(0, 32, 4, device=device, dtype=torch.int32)
        weights = ((words[:, None, :] >> places[None, :, None]) & 0xF).reshape(k, n).to(torch.float32)
        spread = [table.float().repeat_interleave(group_size, dim=0) for table in (zeros, scales)]
        return a.float() @ ((weights - spread[0]) * spread[1])

    return Workload(
        launch=lambda **config: gemv_int4(a, words, scales, zeros, group_size, c, **config),
        result=c,
        expected=expected,
        tolerance=1e-4,
        adds=True,
        size=f"1×{k} · {k}×{n} int4, groups of {group_size}",
        flop=2 * k * n,
        bytes=k * n // 2 + 2 * k + 2 * 2 * (k // group_size) * n + 4 * n,
        unit="fp32",
        configs=[
            {"BLOCK_N": block_n, "BLOCK_K": block_k, "num_warps": warps}
            for block_n, block_k in (
                (64, 32),
                (128, 32),
                (256, 32),
                (64, 64),
                (128, 64),
                (256, 64),
                (64, 128),
            )
            for warps in (1, 2, 4)
        ],
    )


REFERENCE = Reference(
    kernel=gemv_int4_kernel,
    signature={
        "a_ptr": "*fp16:16",
        "w_ptr": "*i32:16",
        "scale_ptr": "*fp16:16",
        "zero_ptr": "*fp16:16",
        "c_ptr": "*fp32:16",
        "N": "i32:16",
    },
    constexprs={"GROUP_SIZE": 128, "BLOCK_N": 128, "BLOCK_K": 32},
    num_warps=2,
)

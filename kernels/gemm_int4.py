"""A product with 4-bit weights as an author writes it first: `C = A @ ((w - zero) * scale)`, with typical flaws.

Eight weights along K share an `int32`. Each row of a word loads that word again, tiles leave multiprocessors without
work, and copies conflict on banks. `inspect-kernel advise` names these, and which changes help; nothing here is a
reference for speed. Run it to compare with torch: `python kernels/gemm_int4.py`.
"""

import triton
import triton.language as tl

GROUP_SIZE = 128


@triton.jit
def gemm_int4_kernel(
    a_ptr,
    w_ptr,
    scale_ptr,
    zero_ptr,
    c_ptr,
    M,
    N,
    K,
    GROUP_SIZE: tl.constexpr = 128,
    BLOCK_M: tl.constexpr = 64,
    BLOCK_N: tl.constexpr = 256,
    BLOCK_K: tl.constexpr = 64,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        rows = k + offs_k
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (rows[None, :] < K), other=0.0)
        words = tl.load(w_ptr + (rows[:, None] // 8) * N + offs_n[None, :], mask=rows[:, None] < K, other=0)
        scale = tl.load(scale_ptr + (k // GROUP_SIZE) * N + offs_n)
        zero = tl.load(zero_ptr + (k // GROUP_SIZE) * N + offs_n)
        w = (words >> ((rows[:, None] % 8) * 4)) & 0xF
        w = (w.to(tl.float16) - zero[None, :]) * scale[None, :]
        acc += tl.dot(a, w)
        a_ptrs += BLOCK_K
    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def gemm_int4(a, words, scales, zeros, **config):
    """C in float16: a is (M, K), words (K // 8, N), scales and zeros (K // GROUP_SIZE, N)."""
    m, k, n = a.shape[0], a.shape[1], words.shape[1]
    c = a.new_empty((m, n))
    config = {"BLOCK_M": 64, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 4, "num_stages": 3, **config}
    grid = (triton.cdiv(m, config["BLOCK_M"]), triton.cdiv(n, config["BLOCK_N"]))
    gemm_int4_kernel[grid](a, words, scales, zeros, c, m, n, k, GROUP_SIZE, **config)
    return c


def main(m: int = 128, k: int = 4096, n: int = 8192) -> None:
    """One layer of a language model for a few tokens."""
    import torch

    a = torch.randn((m, k), device="cuda", dtype=torch.float16)
    words = torch.randint(-(2**31), 2**31 - 1, (k // 8, n), device="cuda", dtype=torch.int32)
    scales = torch.rand((k // GROUP_SIZE, n), device="cuda", dtype=torch.float16) * 0.1
    zeros = torch.full((k // GROUP_SIZE, n), 8.0, device="cuda", dtype=torch.float16)
    gemm_int4(a, words, scales, zeros)


if __name__ == "__main__":
    main()

# ruff: noqa: N803
"""A program for the test of the edit loop: two configurations of one GEMM with 4-bit weights."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_stages=2),
        triton.Config({"BM": 64, "BN": 128, "BK": 64}, num_stages=3),
    ],
    key=["N", "K"],
)
@triton.jit
def int4_gemm(x, qw, scales, out, N, K, sxm, sqk, ssg, som,
              GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x + rm[:, None] * sxm + rk[None, :])
        q = (tl.load(qw + (rk // 8)[:, None] * sqk + rn[None, :]) >> ((rk % 8) * 4)[:, None]) & 0xF
        s = tl.load(scales + (rk // GROUP)[:, None] * ssg + rn[None, :])
        acc += tl.dot(a, ((q - 8).to(tl.float16) * s).to(tl.float16))
    tl.store(out + rm[:, None] * som + rn[None, :], acc.to(tl.float16))


if __name__ == "__main__":
    M, N, K, G = 512, 4096, 4096, 128
    half = {"device": "cuda", "dtype": torch.float16}
    x, s, o = (torch.empty(shape, **half) for shape in ((M, K), (K // G, N), (M, N)))
    qw = torch.empty((K // 8, N), device="cuda", dtype=torch.int32)
    int4_gemm[lambda meta: (M // meta["BM"], N // meta["BN"])](
        x, qw, s, o, N, K, x.stride(0), qw.stride(0), s.stride(0), o.stride(0), GROUP=G
    )

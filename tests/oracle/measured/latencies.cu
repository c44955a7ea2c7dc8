// Latencies and sustained rates that a ranking needs: name, value, unit; cycles of the multiprocessor's clock.
// nvcc -std=c++17 -gencode=arch=compute_90a,code=sm_90a latencies.cu && ./a.out
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <random>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { printf("ERROR %s line %d\n", cudaGetErrorString(e_), __LINE__); fflush(stdout);} } while (0)
typedef unsigned long long u64;
__device__ __forceinline__ u64 now() { u64 t; asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory"); return t; }
__device__ unsigned sink;
static u64 *out; static int SM;

// ── chains: each step needs the last ──
template <int WAY> __global__ void chase(const u64 *start, int n, u64 *o) {  // 0 ld.ca 1 ld.cg 2 ld.cv(volatile)
  const u64 *p = start; u64 a = now();
  for (int i = 0; i < n; i++) { u64 v;
    if (WAY == 0) asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(v) : "l"(p));
    else asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    p = (const u64 *)v; }
  u64 b = now(); o[0] = b - a; o[1] = (u64)p; }
__global__ void chase_shared(int n, u64 *o) { __shared__ unsigned s[1024];
  for (int i = threadIdx.x; i < 1024; i += 32) s[i] = (unsigned)__cvta_generic_to_shared(&s[(i + 33) % 1024]);
  __syncwarp(); unsigned p = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]); u64 a = now();
#pragma unroll 16
  for (int i = 0; i < n; i++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p));
  u64 b = now(); o[0] = b - a; o[1] = p; }
__constant__ unsigned cc[1024];
enum { SHFL, EX2, RCP, SIN, RSQ, I2F, F2I, F2F, POPC, IADD, IMAD, FFMA, HFMA, DFMA, DADD, LDC, VOTE, REDUX, MATCH, LOP, BFIND, LDSM, MMA16, MMA8, MMATF, BAR, PRMT, IMADW, CVT8, S2R, IDIV };
template <int OP> __global__ void chain(int n, u64 *o, unsigned x, float f, double d) {
  __shared__ __align__(16) unsigned s[2048];
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) s[i] = 0;
  __syncthreads();
  unsigned base = (unsigned)__cvta_generic_to_shared(s) + (threadIdx.x & 31) * 16;
  unsigned r0 = 0, r1 = 0, r2 = 0, r3 = 0; float c0 = f, c1 = f, c2 = f, c3 = f; unsigned a0 = x, a1 = x, a2 = x, a3 = x, b0 = x, b1 = x; if (OP != LDC) { x += threadIdx.x; a1 += threadIdx.x; b1 += threadIdx.x; } u64 w = x;
  u64 t0 = now();
#pragma unroll 16
  for (int i = 0; i < n; i++) {
    if (OP == SHFL) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x));
    if (OP == EX2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(f));
    if (OP == RCP) asm volatile("rcp.approx.ftz.f32 %0, %0;" : "+f"(f));
    if (OP == SIN) asm volatile("tanh.approx.f32 %0, %0;" : "+f"(f));
    if (OP == RSQ) asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(f));
    if (OP == I2F) asm volatile("{.reg .f32 t; cvt.rn.f32.s32 t, %0; mov.b32 %0, t;}" : "+r"(x));
    if (OP == F2I) asm volatile("{.reg .s32 t; cvt.rzi.s32.f32 t, %0; mov.b32 %0, t;}" : "+f"(f));
    if (OP == F2F) asm volatile("{.reg .b32 t; cvt.rn.f16x2.f32 t, %0, %0; mov.b32 %0, t;}" : "+f"(f));
    if (OP == CVT8) asm volatile("{.reg .b16 t; .reg .b32 u; cvt.rn.satfinite.e4m3x2.f32 t, %0, %0; mov.b32 u, {t, t}; mov.b32 %0, u;}" : "+f"(f));
    if (OP == POPC) asm volatile("popc.b32 %0, %0;" : "+r"(x));
    if (OP == BFIND) asm volatile("bfind.u32 %0, %0;" : "+r"(x));
    if (OP == IADD) asm volatile("add.u32 %0, %0, %1;" : "+r"(x) : "r"(a1));
    if (OP == LOP) asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x) : "r"(a1), "r"(b1));
    if (OP == PRMT) asm volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(x) : "r"(a1), "r"(b1));
    if (OP == IMAD) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(a1), "r"(b1));
    if (OP == IMADW) asm volatile("mad.wide.u32 %0, %1, %2, %0;" : "+l"(w) : "r"(a1), "r"(b1));
    if (OP == FFMA) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(f) : "f"(c1), "f"(c2));
    if (OP == HFMA) asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(x) : "r"(a1), "r"(b1));
    if (OP == DFMA) asm volatile("fma.rn.f64 %0, %0, %0, %0;" : "+d"(d));
    if (OP == DADD) asm volatile("add.rn.f64 %0, %0, %0;" : "+d"(d));
    if (OP == LDC) { x = cc[x]; asm volatile("" : "+r"(x)); }
    if (OP == VOTE) asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; vote.sync.ballot.b32 %0, p, -1;}" : "+r"(x));
    if (OP == REDUX) asm volatile("redux.sync.add.u32 %0, %0, -1;" : "+r"(x));
    if (OP == MATCH) asm volatile("match.any.sync.b32 %0, %0, -1;" : "+r"(x));
    if (OP == LDSM) { asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(base)); base += r0; }
    if (OP == MMA16) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    if (OP == MMATF) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    if (OP == MMA8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    if (OP == BAR) asm volatile("bar.sync 0;" ::: "memory");
    if (OP == S2R) { unsigned t; asm volatile("mov.u32 %0, %%smid;" : "=r"(t)); x = t + x; asm volatile("" : "+r"(x)); }
    if (OP == IDIV) { x = 1000000000u / (x | 1); asm volatile("" : "+r"(x)); }
  }
  asm volatile("st.volatile.shared.u32 [%0], %1; st.volatile.shared.f32 [%0], %2; st.volatile.shared.f64 [%0], %3;" ::"r"((unsigned)__cvta_generic_to_shared(s)), "r"(x), "f"(f), "d"(d) : "memory");
  asm volatile("st.volatile.shared.f32 [%0], %1; st.volatile.shared.u32 [%0], %2; st.volatile.shared.u64 [%0], %3; st.volatile.shared.u32 [%0], %4;" ::"r"((unsigned)__cvta_generic_to_shared(s)), "f"(c0 + c1 + c2 + c3), "r"(r0 + r1 + r2 + r3), "l"(w), "r"(base) : "memory");
  u64 t1 = now(); if (threadIdx.x == 0) o[0] = t1 - t0;
  if (x == 12345678 && f == 3 && d == 3 && c0 + c1 + c2 + c3 == 7 && r0 + r1 + r2 + r3 == 9 && w == 9) sink = base; }
template <int OP> void chained(const char *name, int n = 1024, int threads = 32) {
  double best = 1e30; for (int k = 0; k < 5; k++) { chain<OP><<<1, threads>>>(n, out, 1, 1.0f, 1.0); CHECK(cudaDeviceSynchronize()); u64 h; cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); best = std::min(best, double(h) / n); }
  printf("%s %.2f cycles\n", name, best); }
// ── atomics ──
__global__ void atoms(unsigned *p, int n, u64 *o) { unsigned v = 0; u64 a = now();
  for (int i = 0; i < n; i++) v = atomicAdd(p + (v >> 31), 1u); u64 b = now(); o[0] = b - a; sink = v; }
__global__ void atoms_shared(int n, u64 *o) { __shared__ unsigned s[32]; s[threadIdx.x] = 0; __syncwarp(); unsigned v = 0; u64 a = now();
  for (int i = 0; i < n; i++) v = atomicAdd(s + ((threadIdx.x + (v >> 31)) & 31), 1u); u64 b = now(); if (!threadIdx.x) o[0] = b - a; sink = v; }
// ── rates: all multiprocessors; cycles by the longest CTA ──
__global__ void reading(const uint4 *p, long per_cta, int rounds, long total, u64 *o) {  // each CTA reads its part, 16 bytes a lane
  u64 a = now(); uint4 s = {0, 0, 0, 0};
  for (int k = 0; k < rounds; k++) { const uint4 *q = p + ((blockIdx.x + (long)k * 7) % gridDim.x) * per_cta;
    for (long i = threadIdx.x; i + 3 * blockDim.x < per_cta; i += 4 * blockDim.x) { uint4 v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[j].x), "=r"(v[j].y), "=r"(v[j].z), "=r"(v[j].w) : "l"(q + i + j * blockDim.x));
#pragma unroll
      for (int j = 0; j < 4; j++) { s.x ^= v[j].x; s.y ^= v[j].y; s.z ^= v[j].z; s.w ^= v[j].w; } } }
  u64 b = now(); if (s.x == 1 && s.y == 2 && s.z == 3) sink = s.w; if (!threadIdx.x) o[blockIdx.x] = b - a; }
template <int BYTES, int WRITE> __global__ void striding(char *p, long span, int stride, int n, int run, u64 *o) {  // a lane: BYTES at every `stride`; runs of `run` lanes side by side at random places
  u64 a = now(); unsigned s = 0; unsigned seed = blockIdx.x * blockDim.x + threadIdx.x; seed /= run; seed = seed * 2654435761u + 12345;
  int lane = threadIdx.x % run;
  for (int k = 0; k < n; k += 4) { unsigned v[4];
#pragma unroll
    for (int j = 0; j < 4; j++) { seed = seed * 1664525u + 1013904223u; long at = ((u64)(seed >> 4) * (u64)(span / (run * stride)) >> 28) * (long)(run * stride) + (long)lane * stride;
      if (WRITE == 0) { if (BYTES == 16) { unsigned y, z, w; asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[j]), "=r"(y), "=r"(z), "=r"(w) : "l"(p + at)); } else if (BYTES == 4) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v[j]) : "l"(p + at)); else { unsigned short t; asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(t) : "l"(p + at)); v[j] = t; } }
      else if (WRITE == 1) { if (BYTES == 16) asm volatile("st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(p + at), "r"(seed)); else if (BYTES == 4) asm volatile("st.global.u32 [%0], %1;" ::"l"(p + at), "r"(seed)); else asm volatile("st.global.u16 [%0], %1;" ::"l"(p + at), "h"((unsigned short)seed)); }
      else asm volatile("red.global.add.u32 [%0], %1;" ::"l"(p + at), "r"(1)); }
    if (WRITE == 0)
#pragma unroll
      for (int j = 0; j < 4; j++) s ^= v[j]; }
  u64 b = now(); if (s == 77) sink = s; if (!threadIdx.x) o[blockIdx.x] = b - a; }
__global__ void filling(uint4 *p, long n, u64 *o) { u64 a = now(); for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) p[i] = {1, 2, 3, 4}; u64 b = now(); if (!threadIdx.x) o[blockIdx.x] = b - a; }
__global__ void copying(uint4 *p, const uint4 *q, long n, u64 *o) { u64 a = now(); for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) p[i] = q[i]; u64 b = now(); if (!threadIdx.x) o[blockIdx.x] = b - a; }
template <int OP> __global__ void rate(int n, u64 *o, unsigned x, float f) { __shared__ __align__(128) unsigned s[4096]; for (int i = threadIdx.x; i < 4096; i += blockDim.x) s[i] = x; __syncthreads();
  unsigned base = (unsigned)__cvta_generic_to_shared(s) + (threadIdx.x & 31) * 16; unsigned r[4] = {x, x, x, x}; float c[16]; for (int i = 0; i < 16; i++) c[i] = f; unsigned acc = 0; u64 t0 = now();
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (OP == MMA16) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c[4 * j]), "+f"(c[4 * j + 1]), "+f"(c[4 * j + 2]), "+f"(c[4 * j + 3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(x), "r"(x));
      if (OP == MMATF) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c[4 * j]), "+f"(c[4 * j + 1]), "+f"(c[4 * j + 2]), "+f"(c[4 * j + 3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(x), "r"(x));
      if (OP == MMA8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+r"(*(unsigned *)&c[4 * j]), "+r"(*(unsigned *)&c[4 * j + 1]), "+r"(*(unsigned *)&c[4 * j + 2]), "+r"(*(unsigned *)&c[4 * j + 3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(x), "r"(x));
      if (OP == SHFL) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(r[j]));
      if (OP == LDC) asm volatile("{.reg .u32 t; ld.shared.u32 t, [%1]; xor.b32 %0, %0, t;}" : "+r"(acc) : "r"(base + 4 * j));
      if (OP == LDSM) { unsigned a, b, d, e; asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(d), "=r"(e) : "r"(base + 512 * j)); acc ^= a; }
      if (OP == EX2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(c[j]));
      if (OP == F2F) asm volatile("{.reg .b32 t; cvt.rn.f16x2.f32 t, %0, %0; mov.b32 %0, t;}" : "+f"(c[j]));
      if (OP == CVT8) asm volatile("{.reg .b16 t; .reg .b32 u; cvt.rn.satfinite.e4m3x2.f32 t, %0, %0; mov.b32 u, {t, t}; mov.b32 %0, u;}" : "+f"(c[j]));
      if (OP == I2F) asm volatile("{.reg .f32 t; cvt.rn.f32.s32 t, %0; mov.b32 %0, t;}" : "+r"(r[j]));
      if (OP == REDUX) asm volatile("redux.sync.add.u32 %0, %0, -1;" : "+r"(r[j])); } }
  float t = 0; for (int i = 0; i < 16; i++) t += c[i];
  asm volatile("st.volatile.shared.f32 [%0], %1; st.volatile.shared.u32 [%0], %2;" ::"r"(base), "f"(t), "r"(r[0] + r[1] + r[2] + r[3] + acc) : "memory"); u64 t1 = now(); if (!threadIdx.x) o[blockIdx.x] = t1 - t0; if (t == 123 && r[0] + r[1] + r[2] + r[3] + acc == 5) sink = 1; }
template <int OP> void rated(const char *name, int warps) { double best = 1e30; int n = 512; for (int k = 0; k < 3; k++) { rate<OP><<<1, warps * 32>>>(n, out, 0, 0.f); CHECK(cudaDeviceSynchronize()); u64 h; cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); best = std::min(best, double(h)); } printf("rate_%s_%d %.2f cycles for a warp's instruction on a multiprocessor\n", name, warps, best / n / 4 / warps); }
template <int REGS> __global__ void heavy(int x, unsigned *p) { unsigned v[REGS];
#pragma unroll
  for (int i = 0; i < REGS; i++) v[i] = x * (i + 3);
  if (x == 77) { for (int k = 0; k < x; k++)
#pragma unroll
    for (int i = 0; i < REGS; i++) v[i] = v[i] * v[(i + 1) % REGS] + p[v[i] & 1023];
  unsigned s = 0;
#pragma unroll
  for (int i = 0; i < REGS; i++) s ^= v[i]; sink = s; } }
__global__ void roomy(int x) { extern __shared__ __align__(128) char s[]; if (x == 77) sink = s[x]; }
__global__ void nothing(int x) { if (x == 77) sink = 1; }
__global__ void storing(int *p) { p[(blockIdx.x * blockDim.x + threadIdx.x) & 0xFFFFFF] = 1; }
__global__ void spin(u64 cycles, u64 *o) { u64 a, b, t0, t1; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0)); a = now(); do b = now(); while (b - a < cycles); asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1)); o[0] = b - a; o[1] = t1 - t0; }
// ── copies by the tensor memory accelerator (one dimension: no map) ──
__global__ void bulk(const char *p, int bytes, int n, long step, u64 *o) { extern __shared__ __align__(128) char s[]; __shared__ u64 bar; unsigned b = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(s);
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b)); asm volatile("fence.proxy.async;" ::: "memory"); u64 total = 0;
  for (int i = 0; i < n; i++) { u64 a = now(); asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(p + i * step), "r"(bytes), "r"(b) : "memory");
    unsigned done = 0; while (!done) asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared.b64 q, [%1], %2; selp.u32 %0, 1, 0, q;}" : "=r"(done) : "r"(b), "r"(i & 1) : "memory");
    total += now() - a; } o[0] = total; }
__global__ void copied(const char *p, int n, long step, u64 *o) { extern __shared__ __align__(128) char s[]; unsigned to = (unsigned)__cvta_generic_to_shared(s) + threadIdx.x * 16; u64 total = 0;
  for (int i = 0; i < n; i++) { u64 a = now(); asm volatile("cp.async.cg.shared.global [%0], [%1], 16; cp.async.commit_group; cp.async.wait_group 0;" ::"r"(to), "l"(p + i * step + threadIdx.x * 16) : "memory"); total += now() - a; } if (!threadIdx.x) o[0] = total; }
// ── a warpgroup's product: 64×N×16, both from shared memory, no swizzle ──
__device__ u64 descriptor(unsigned at) { return ((u64)(at & 0x3FFFF) >> 4) | ((u64)(128 >> 4) << 16) | ((u64)(256 >> 4) << 32); }
#define R4(a) "+f"(c[a]), "+f"(c[a + 1]), "+f"(c[a + 2]), "+f"(c[a + 3])
template <int COUNT> __global__ void group(int n, u64 *o) { extern __shared__ __align__(1024) char s[]; for (int i = threadIdx.x; i < 8192; i += 128) ((int *)s)[i] = 0; __syncthreads(); asm volatile("fence.proxy.async;" ::: "memory");
  float c[32]; for (int i = 0; i < 32; i++) c[i] = 0; u64 da = descriptor((unsigned)__cvta_generic_to_shared(s)), db = descriptor((unsigned)__cvta_generic_to_shared(s) + 8192); u64 a = now();
  for (int i = 0; i < n; i++) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < COUNT; k++) asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;" : R4(0), R4(4), R4(8), R4(12), R4(16), R4(20), R4(24), R4(28) : "l"(da), "l"(db));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
  u64 b = now(); float t = 0; for (int i = 0; i < 32; i++) t += c[i]; if (t == 5) sink = 1; if (!threadIdx.x) o[0] = b - a; }

static double megahertz = 0;
template <class F> double longest(F f, int ctas, int times = 4) { double best = 1e30; for (int k = 0; k < times; k++) { f(); CHECK(cudaDeviceSynchronize()); std::vector<u64> h(ctas); cudaMemcpy(h.data(), out, 8 * ctas, cudaMemcpyDeviceToHost); best = std::min(best, double(*std::max_element(h.begin(), h.end()))); } return best; }
template <class F> double milliseconds(F f, int times = 5) { cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b); double best = 1e30; for (int k = 0; k < times; k++) { cudaEventRecord(a); f(); cudaEventRecord(b); CHECK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms, a, b); best = std::min(best, double(ms)); } return best; }
u64 *ring(size_t bytes, size_t step, int seed) { size_t n = bytes / step; std::vector<size_t> at(n); for (size_t i = 0; i < n; i++) at[i] = i; std::mt19937_64 g(seed); std::shuffle(at.begin(), at.end(), g); u64 *d; CHECK(cudaMalloc(&d, bytes)); std::vector<u64> h(bytes / 8, 0); for (size_t i = 0; i < n; i++) h[at[i] * step / 8] = (u64)d + at[(i + 1) % n] * step; cudaMemcpy(d, h.data(), bytes, cudaMemcpyHostToDevice); return d; }
int main() { cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0); SM = prop.multiProcessorCount; printf("device %s %d SMs L2 %d\n", prop.name, SM, prop.l2CacheSize); cudaMalloc(&out, 8 << 20);
  for (int k = 0; k < 20; k++) { spin<<<1, 1>>>(20000000, out); } CHECK(cudaDeviceSynchronize()); u64 two[2]; cudaMemcpy(two, out, 16, cudaMemcpyDeviceToHost); megahertz = two[0] * 1e3 / two[1]; printf("clock %.0f MHz\n", megahertz);
  u64 *p, h;
  auto chased = [&](const char *name, size_t bytes, size_t step, int way, int warm) { p = ring(bytes, step, 1); int n = way == 0 ? 20000 : std::min<size_t>(bytes / step, 20000); std::vector<double> all; for (int k = 0; k < 3 + warm; k++) { if (way == 0) chase<0><<<1, 1>>>(p, n, out); else chase<1><<<1, 1>>>(p, n, out); CHECK(cudaDeviceSynchronize()); cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); all.push_back(double(h) / n); } printf("%s %.1f cycles (first %.1f)\n", name, all.back(), all[0]); cudaFree(p); };
  chased("l1_16KiB", 16 << 10, 128, 0, 1); chased("l2_1MiB", 1 << 20, 128, 1, 1); chased("l2_8MiB", 8 << 20, 128, 1, 1); chased("l2_20MiB", 20 << 20, 2048, 1, 1); 
  { char *f; cudaMalloc(&f, 256 << 20); for (size_t mb : {64, 128, 256}) { p = ring(mb << 20, 4096 + 128, 2); double best = 1e30; for (int k = 0; k < 3; k++) { cudaMemset(f, k, 256 << 20); chase<1><<<1, 1>>>(p, 4000, out); CHECK(cudaDeviceSynchronize()); cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); best = std::min(best, double(h) / 4000); } printf("dram_%zuMiB %.1f cycles\n", mb, best); cudaFree(p); } cudaFree(f); }
  chase_shared<<<1, 32>>>(2048, out); CHECK(cudaDeviceSynchronize()); chase_shared<<<1, 32>>>(2048, out); cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); printf("shared %.2f cycles\n", double(h) / 2048);
  chained<LDSM>("ldmatrix_x4_and_add"); chained<SHFL>("shuffle"); chained<EX2>("ex2"); chained<RSQ>("rsqrt"); chained<SIN>("tanh"); chained<I2F>("i2f"); chained<F2I>("f2i"); chained<F2F>("f32_to_f16x2"); chained<CVT8>("f32_to_e4m3x2"); chained<POPC>("popc"); chained<BFIND>("bfind"); chained<LOP>("lop3"); chained<PRMT>("prmt"); chained<IMAD>("imad"); chained<IMADW>("imad_wide"); chained<FFMA>("ffma"); chained<HFMA>("hfma2"); chained<DFMA>("dfma"); chained<DADD>("dadd"); chained<LDC>("ldc"); chained<VOTE>("setp_vote"); chained<REDUX>("redux"); chained<MATCH>("match"); chained<MMA16>("mma_m16n8k16_f16"); chained<MMATF>("mma_m16n8k8_tf32"); chained<MMA8>("mma_m16n8k32_s8"); chained<IDIV>("idiv");
  for (int w : {1, 2, 4, 8, 16, 32}) { char t[40]; sprintf(t, "barrier_%d_warps", w); chained<BAR>(t, 1024, 32 * w); }
  unsigned *q; cudaMalloc(&q, 1 << 20); cudaMemset(q, 0, 1 << 20); for (int k = 0; k < 3; k++) { atoms<<<1, 1>>>(q, 500, out); CHECK(cudaDeviceSynchronize()); } cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); printf("atomic_global %.1f cycles\n", h / 500.0); atoms_shared<<<1, 32>>>(500, out); CHECK(cudaDeviceSynchronize()); cudaMemcpy(&h, out, 8, cudaMemcpyDeviceToHost); printf("atomic_shared %.1f cycles\n", h / 500.0);
  rated<MMA16>("mma_f16", 4); rated<MMA16>("mma_f16", 8); rated<MMA16>("mma_f16", 16); rated<MMATF>("mma_tf32", 8); rated<MMA8>("mma_s8", 8); rated<EX2>("ex2", 16); rated<F2F>("f32_to_f16x2", 16); rated<CVT8>("f32_to_e4m3x2", 16); rated<I2F>("i2f", 16); rated<REDUX>("redux", 16);
  { double one[4]; int at = 0; auto run = [&](auto k, int count) { double c = longest([&] { k(); }, 1) / 256; printf("warpgroup_n64_%d_products %.1f cycles\n", count, c); one[at++] = c; }; run([&] { group<1><<<1, 128, 32768>>>(256, out); }, 1); run([&] { group<2><<<1, 128, 32768>>>(256, out); }, 2); run([&] { group<4><<<1, 128, 32768>>>(256, out); }, 4); run([&] { group<8><<<1, 128, 32768>>>(256, out); }, 8); }
  char *big; size_t span = size_t(4) << 30; CHECK(cudaMalloc(&big, span)); cudaMemset(big, 0, span);
  for (int b : {1024, 4096, 16384}) { for (long step : {0L, 65536L}) { double c = longest([&] { bulk<<<1, 1, 16384>>>(big + (1 << 28), b, 64, step, out); }, 1, 3) / 64; if (step) { cudaMemset(big + (size_t(1) << 31), 1, 256 << 20); c = longest([&] { bulk<<<1, 1, 16384>>>(big + (size_t(1) << 30), b, 64, step, out); }, 1, 1) / 64; } printf("bulk_%d_%s %.1f cycles\n", b, step ? "dram" : "l2", c); } }
  for (long step : {0L, 65536L}) { double c = longest([&] { copied<<<1, 64, 16384>>>(big + (1 << 28), 64, step, out); }, 1, 3) / 64; if (step) { cudaMemset(big + (size_t(1) << 31), 1, 256 << 20); c = longest([&] { copied<<<1, 64, 16384>>>(big + (size_t(1) << 30), 64, step, out); }, 1, 1) / 64; } printf("cp_async_1024_%s %.1f cycles\n", step ? "dram" : "l2", c); }
  for (int w : {1, 2, 4, 8, 16, 32}) { int n = SM * 20000; double a = milliseconds([&] { nothing<<<n, 32 * w>>>(0); }), b = milliseconds([&] { nothing<<<2 * n, 32 * w>>>(0); }); double c = milliseconds([&] { storing<<<n, 32 * w>>>((int *)big); }), d = milliseconds([&] { storing<<<2 * n, 32 * w>>>((int *)big); }); printf("launch_%d_warps %.1f cycles per CTA and SM; with a store %.1f\n", w, (b - a) * 1e-3 * megahertz * 1e6 / 20000, (d - c) * 1e-3 * megahertz * 1e6 / 20000); }
  for (int w : {1, 4, 8}) { int n = SM * 10000; double a = milliseconds([&] { heavy<100><<<n, 32 * w>>>(0, (unsigned *)big); }), b = milliseconds([&] { heavy<100><<<2 * n, 32 * w>>>(0, (unsigned *)big); }); printf("launch_%d_warps_many_registers %.1f cycles\n", w, (b - a) * 1e-3 * megahertz * 1e6 / 10000); }
  cudaFuncSetAttribute(roomy, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10); for (int k : {8, 32, 64, 100, 200}) { int n = SM * 10000; double a = milliseconds([&] { roomy<<<n, 128, k << 10>>>(0); }), b = milliseconds([&] { roomy<<<2 * n, 128, k << 10>>>(0); }); printf("launch_4_warps_%d_KiB_shared %.1f cycles\n", k, (b - a) * 1e-3 * megahertz * 1e6 / 10000); }
  auto rates = [&](const char *name, long bytes, int rounds, int ctas, int threads) { long per = bytes / 16 / ctas; double c = longest([&] { reading<<<ctas, threads>>>((uint4 *)big, per, rounds, bytes, out); }, ctas); printf("%s %.2f bytes a cycle and SM (%d CTAs)\n", name, double(per * 16) * rounds * std::max(ctas / std::min(ctas, SM), 1) / c, ctas); };
  rates("l2_read_all_16.5MiB", (long)SM * 131072, 40, SM, 1024); rates("l2_read_all_16.5MiB", (long)SM * 131072, 40, 2 * SM, 1024); rates("l2_read_all_8.25MiB", (long)SM * 65536, 40, SM, 1024); rates("l2_read_66_SMs", 66L * 131072, 40, 66, 1024); rates("l2_read_33_SMs", 33L * 131072, 40, 33, 1024); rates("l2_read_one_SM_1MiB", 1 << 20, 20, 1, 1024); rates("l2_read_8_SMs_8MiB", 8 << 20, 10, 8, 1024);
  { size_t n = span / 2 / 16; double a = milliseconds([&] { reading<<<8 * SM, 1024>>>((uint4 *)big, n / (8 * SM), 1, 0, out); }), b = milliseconds([&] { filling<<<8 * SM, 1024>>>((uint4 *)big, n, out); }), c = milliseconds([&] { copying<<<8 * SM, 1024>>>((uint4 *)big, (uint4 *)(big + span / 2), n, out); }); printf("dram_read %.3f TB/s\ndram_write %.3f TB/s\ndram_copy %.3f TB/s (read and written)\n", span / 2 / a / 1e9, span / 2 / b / 1e9, span / c / 1e9); }
#define STRIDE(B, W, name) for (int run : {1, 2, 4, 8, 16, 32}) for (int stride : {B, 128}) for (int far : {0, 1}) { if (stride == 128 && run != 32) continue; long bytes = far ? (long)(span / 2) : (16L << 20); int n = 256; double ms = milliseconds([&] { striding<B, W><<<4 * SM, 512>>>(big, bytes, stride, n, run, out); }, 3); printf("%s_%d_run_%d_stride_%d_%s %.3f cycles a lane's access on a multiprocessor\n", name, B, run, stride, far ? "dram" : "l2", ms * 1e-3 * megahertz * 1e6 / (4.0 * 512 * n)); }
  STRIDE(16, 0, "read") STRIDE(4, 0, "read") STRIDE(4, 1, "write") STRIDE(16, 1, "write") STRIDE(2, 1, "write") STRIDE(4, 2, "reduce")
  printf("end\n"); }

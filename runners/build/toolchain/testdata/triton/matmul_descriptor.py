import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a, b, c, K, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row = tl.program_id(0) * TILE_M
    col = tl.program_id(1) * TILE_N
    sum = tl.zeros([TILE_M, TILE_N], tl.float32)
    for start in range(0, K, TILE_K):
        sum = tl.dot(a.load([row, start]), b.load([start, col]), sum)
    c.store([row, col], sum.to(tl.float16))

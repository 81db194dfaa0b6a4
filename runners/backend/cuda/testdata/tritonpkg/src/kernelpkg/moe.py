import triton
import triton.language as tl


@triton.jit
def fused_moe_kernel(
    a, b, c, weights, sorted_ids, expert_ids, N, K, valid,
    ALIGN: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TOP_K: tl.constexpr, MUL_WEIGHT: tl.constexpr, compute_type: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tokens = tl.load(sorted_ids + rows).to(tl.int64)
    real = tokens < valid
    expert = tl.load(expert_ids + tl.program_id(0) * BLOCK_M // ALIGN).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    sum = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + (tokens // TOP_K)[:, None] * K + (start + ks)[None, :], mask=real[:, None] & (start + ks < K)[None, :], other=0.0)
        right = tl.load(b + expert * N * K + cols[None, :] * K + (start + ks)[:, None], mask=(cols < N)[None, :] & (start + ks < K)[:, None], other=0.0)
        sum = tl.dot(left, right, sum)
    if MUL_WEIGHT:
        sum *= tl.load(weights + tokens, mask=real, other=0.0)[:, None]
    tl.store(c + tokens[:, None] * N + cols[None, :], sum.to(compute_type), mask=real[:, None] & (cols < N)[None, :])

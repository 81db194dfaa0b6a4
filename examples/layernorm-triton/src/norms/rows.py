"""What the kernels of this package share: their configurations, and sums over the blocks of a row."""
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in [(128, 1), (128, 4)]]


@triton.jit
def row_mean(x, N, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < N, other=0.0).to(tl.float32)
    return tl.sum(total, 0) / N


@triton.jit
def row_variance(x, mean, N, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        distance = tl.load(x + at, mask=at < N, other=0.0).to(tl.float32) - mean
        distance = tl.where(at < N, distance, 0.0)
        total += distance * distance
    return tl.sum(total, 0) / N

import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, rows, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + at, v / tl.sum(v, 0), mask=at < cols)

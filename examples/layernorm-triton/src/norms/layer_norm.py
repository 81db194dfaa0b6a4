"""Layer norm over the rows of a matrix, one program a row."""
import triton
import triton.language as tl

from .rows import CONFIGS, row_mean, row_variance


@triton.autotune(configs=CONFIGS, key=["N"])
@triton.jit
def layer_norm_kernel(x, weight, bias, y, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * N
    y += row * N
    mean = row_mean(x, N, BLOCK)
    scale = tl.rsqrt(row_variance(x, mean, N, BLOCK) + eps)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < N, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=at < N, other=0.0).to(tl.float32)
        b = tl.load(bias + at, mask=at < N, other=0.0).to(tl.float32)
        tl.store(y + at, ((value - mean) * scale * w + b).to(y.dtype.element_ty), mask=at < N)


def layer_norm(x, weight, bias, eps=1e-5):
    """The function that users of the package call. kernelgate launches the kernel by the manifest instead."""
    rows, N = x.shape
    y = x.new_empty(x.shape)
    layer_norm_kernel[(rows,)](x, weight, bias, y, N, eps)
    return y

import triton
import triton.language as tl


@triton.jit
def norm(x, g, y, columns, BLOCK: tl.constexpr):
    """RMS norm of one row."""
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row + at, mask=inside, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(v * v, 0) / columns + 1e-6)
    tl.store(y + row + at, v * scale * tl.load(g + at, mask=inside, other=0.0), mask=inside)

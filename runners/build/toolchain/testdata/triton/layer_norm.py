import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x, weight, bias, y, rows, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * cols
    y += row * cols
    total = tl.zeros([BLOCK], tl.float32)
    square = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + at, mask=at < cols, other=0.0).to(tl.float32)
        total += v
        square += v * v
    mean = tl.sum(total, 0) / cols
    scale = 1 / tl.sqrt(tl.sum(square, 0) / cols - mean * mean + eps)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < cols
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(bias + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, (v - mean) * scale * w + b, mask=inside)

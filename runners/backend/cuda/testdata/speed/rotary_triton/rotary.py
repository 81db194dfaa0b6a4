import triton
import triton.language as tl


@triton.jit
def rotary(x, cos, sin, y, H, HALF: tl.constexpr):
    token, head, at = tl.program_id(0), tl.program_id(1), tl.arange(0, HALF)
    start = (token * H + head) * 2 * HALF
    c, s = tl.load(cos + token * HALF + at), tl.load(sin + token * HALF + at)
    a, b = tl.load(x + start + at).to(tl.float32), tl.load(x + start + HALF + at).to(tl.float32)
    tl.store(y + start + at, (a * c - b * s).to(tl.bfloat16))
    tl.store(y + start + HALF + at, (b * c + a * s).to(tl.bfloat16))

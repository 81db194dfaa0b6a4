import triton
import triton.language as tl


@triton.jit
def swiglu(gate, up, y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < N, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=at < N, other=0.0).to(tl.float32)
    tl.store(y + at, (g * tl.sigmoid(g) * u).to(tl.bfloat16), mask=at < N)

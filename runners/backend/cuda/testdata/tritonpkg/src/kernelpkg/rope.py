import triton
import triton.language as tl


@triton.heuristics({
    "BLOCK_HALF": lambda args: triton.next_power_of_2(args["half"]),
    "HAS_POSITIONS": lambda args: args["positions"] is not None,
    "WHOLE": lambda args: args["heads"] % args["GROUP"] == 0,
})
@triton.jit
def rope_kernel(
    q, positions, cos, sin, out, heads, half,
    GROUP: tl.constexpr, BLOCK_HALF: tl.constexpr, HAS_POSITIONS: tl.constexpr, WHOLE: tl.constexpr, BACKWARD: tl.constexpr, SCALE: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK_HALF)
    angle = token
    if HAS_POSITIONS:
        angle = tl.load(positions + token)
    c = tl.load(cos + angle * half + at, mask=at < half, other=0.0)
    s = tl.load(sin + angle * half + at, mask=at < half, other=0.0)
    if BACKWARD:
        s = -s
    for i in range(GROUP):
        head = tl.program_id(1) * GROUP + i
        if WHOLE or head < heads:
            row = (token * heads + head) * 2 * half
            a = tl.load(q + row + at, mask=at < half, other=0.0).to(tl.float32)
            b = tl.load(q + row + half + at, mask=at < half, other=0.0).to(tl.float32)
            if SCALE is not None:
                a *= SCALE
                b *= SCALE
            tl.store(out + row + at, a * c - b * s, mask=at < half)
            tl.store(out + row + half + at, b * c + a * s, mask=at < half)

import triton
import triton.language as tl

from .configs import CONFIGS
from .gate import correct, decay


@triton.heuristics({"USE_G": lambda args: args["g"] is not None})
@triton.autotune(configs=CONFIGS, key=["K", "V"])
@triton.jit(do_not_specialize=["T"])
def gated_delta_kernel(q, k, v, g, beta, o, T, scale, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, USE_G: tl.constexpr):
    head = tl.program_id(1)
    keys = tl.arange(0, BK)
    values = tl.program_id(0) * BV + tl.arange(0, BV)
    state = tl.zeros([BK, BV], tl.float32)
    for t in range(0, T):
        row = t * H + head
        kt = tl.load(k + row * K + keys, mask=keys < K, other=0.0).to(tl.float32)
        vt = tl.load(v + row * V + values, mask=values < V, other=0.0).to(tl.float32)
        qt = tl.load(q + row * K + keys, mask=keys < K, other=0.0).to(tl.float32) * scale
        if USE_G:
            state = decay(state, tl.load(g + row))
        state += kt[:, None] * correct(state, kt, vt, tl.load(beta + row))[None, :]
        tl.store(o + row * V + values, tl.sum(state * qt[:, None], 0), mask=values < V)

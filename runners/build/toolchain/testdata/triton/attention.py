import triton
import triton.language as tl


@triton.jit
def attention_kernel(q, k, v, o, S, scale, D: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr):
    head = tl.program_id(1) * S * D
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    d = tl.arange(0, D)
    here = (rows[:, None] < S) & (d[None, :] < D)
    queries = tl.load(q + head + rows[:, None] * D + d[None, :], mask=here, other=0.0)
    most = tl.full([ROWS], -float("inf"), tl.float32)
    weight = tl.zeros([ROWS], tl.float32)
    out = tl.zeros([ROWS, D], tl.float32)
    for start in range(0, S, KEYS):
        keys = start + tl.arange(0, KEYS)
        key = tl.load(k + head + keys[None, :] * D + d[:, None], mask=keys[None, :] < S, other=0.0)
        score = tl.dot(queries, key) * scale
        score = tl.where(keys[None, :] < S, score, -float("inf"))
        now = tl.maximum(most, tl.max(score, 1))
        p = tl.exp(score - now[:, None])
        shrink = tl.exp(most - now)
        value = tl.load(v + head + keys[:, None] * D + d[None, :], mask=keys[:, None] < S, other=0.0)
        weight = weight * shrink + tl.sum(p, 1)
        out = tl.dot(p.to(tl.float16), value, out * shrink[:, None])
        most = now
    tl.store(o + head + rows[:, None] * D + d[None, :], (out / weight[:, None]).to(tl.float16), mask=here)

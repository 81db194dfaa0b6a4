import triton
import triton.language as tl


@triton.jit
def split_kernel(q, k, v, lengths, partial, weight, S, scale, H: tl.constexpr, D: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr):
    batch, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + batch)
    each = tl.cdiv(length, SPLITS)
    begin, end = split * each, tl.minimum(split * each + each, length)
    at = tl.arange(0, D)
    query = tl.load(q + (batch * H + head) * D + at).to(tl.float32) * scale
    most = float("-inf")
    sum = 0.0
    out = tl.zeros([D], tl.float32)
    for start in range(begin, end, KEYS):
        keys = start + tl.arange(0, KEYS)
        rows = ((batch * S + keys) * H + head)[:, None] * D + at[None, :]
        score = tl.sum(tl.load(k + rows, mask=(keys < end)[:, None], other=0.0).to(tl.float32) * query[None, :], 1)
        score = tl.where(keys < end, score, float("-inf"))
        now = tl.maximum(most, tl.max(score, 0))
        p = tl.exp(score - now)
        keep = tl.exp(most - now)
        sum = sum * keep + tl.sum(p, 0)
        out = out * keep + tl.sum(tl.load(v + rows, mask=(keys < end)[:, None], other=0.0).to(tl.float32) * p[:, None], 0)
        most = now
    to = (batch * H + head) * SPLITS + split
    if end > begin:
        tl.store(partial + to * D + at, out / sum)
        tl.store(weight + to, most + tl.log(sum))
    else:
        tl.store(partial + to * D + at, tl.zeros([D], tl.float32))
        tl.store(weight + to, float("-inf"))


@triton.jit
def combine_kernel(partial, weight, o, D: tl.constexpr, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    at, splits = tl.arange(0, D), tl.arange(0, SPLITS)
    weights = tl.load(weight + row * SPLITS + splits)
    p = tl.exp(weights - tl.max(weights, 0))
    parts = tl.load(partial + (row * SPLITS + splits)[:, None] * D + at[None, :])
    tl.store(o + row * D + at, tl.sum(parts * p[:, None], 0) / tl.sum(p, 0))

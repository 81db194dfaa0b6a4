import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"BLOCK": block, "STAGES": stages}, num_warps=warps)
    for block in (256, 512, 1024, 2048, 4096)
    for warps in (2, 4, 8, 16)
    for stages in (1, 3)
]


@triton.autotune(configs=CONFIGURATIONS, key=["columns"])
@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Softmax of one row in pieces of BLOCK: the maximum and the sum first, then the quotients."""
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    most, total = -float("inf"), 0.0
    for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
        v = tl.load(x + row + start + at, mask=start + at < columns, other=-float("inf"))
        larger = tl.maximum(most, tl.max(v, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(v - larger), 0)
        most = larger
    for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
        inside = start + at < columns
        v = tl.load(x + row + start + at, mask=inside, other=0.0)
        tl.store(y + row + start + at, tl.exp(v - most) / total, mask=inside)

import triton
import triton.language as tl

from kernelpkg.utils import calculate_settings, empty_like

from .utils import merge_max


@triton.jit
def cross_entropy_kernel(
    x, target, loss, grad, n_cols, ignore_index, label_smoothing,
    BLOCK: tl.constexpr, HAS_SMOOTHING: tl.constexpr, REDUCTION: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x += row * n_cols
    grad += row * n_cols
    y = tl.load(target + row)
    if y == ignore_index:
        for start in range(0, n_cols, BLOCK):
            at = start + tl.arange(0, BLOCK)
            tl.store(grad + at, 0.0, mask=at < n_cols)
        tl.store(loss + row, 0.0)
        return
    most = float("-inf")
    sum = 0.0
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        block = tl.load(x + at, mask=at < n_cols, other=float("-inf"))
        most, sum = merge_max(most, sum, block)
        if HAS_SMOOTHING:
            total += tl.sum(tl.where(at < n_cols, block, 0.0), 0)
    log_sum = most + tl.log(sum)
    eps = label_smoothing / n_cols
    found = log_sum - tl.load(x + y)
    if HAS_SMOOTHING:
        found = (1 - label_smoothing) * found + eps * (n_cols * log_sum - total)
    if REDUCTION == "none":
        tl.store(loss + row, found)
    for start in range(0, n_cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        p = tl.exp(tl.load(x + at, mask=at < n_cols, other=0.0) - log_sum)
        if HAS_SMOOTHING:
            p -= eps
        p = tl.where(at == y, p - (1 - label_smoothing), p)
        tl.store(grad + at, p, mask=at < n_cols)


def cross_entropy(x, target, ignore_index=-100, label_smoothing=0.0):
    """The host side, which no gate runs."""
    block, warps = calculate_settings(x.shape[1])
    loss, grad = x.new_empty(x.shape[0]), empty_like(x)
    cross_entropy_kernel[(x.shape[0],)](
        x, target, loss, grad, x.shape[1], ignore_index, label_smoothing, BLOCK=block, HAS_SMOOTHING=label_smoothing > 0, REDUCTION="none", num_warps=warps)
    return loss, grad

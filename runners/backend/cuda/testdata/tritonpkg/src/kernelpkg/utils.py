import functools

import triton
import triton.language as tl

try:
    import torch
except ImportError:  # only the host side needs it
    torch = None


@functools.lru_cache(maxsize=None)
def calculate_settings(n):
    """The block and the warps of a row of n elements, as the host side has them."""
    block = triton.next_power_of_2(n)
    if block > 65536:
        raise RuntimeError(f"a row of {n} elements is too long for one block")
    return block, 16 if block >= 8192 else 8 if block >= 2048 else 4


def empty_like(x):
    import torch as loaded

    return loaded.empty_like(x)


@triton.jit
def merge_max(most, sum, block):
    """One step of an online softmax: the new maximum, and the sum that goes with it."""
    now = tl.maximum(most, tl.max(block, 0))
    return now, sum * tl.exp(most - now) + tl.sum(tl.exp(block - now), 0)

import triton
import triton.language as tl


@triton.jit
def decay(state, g):
    return state * tl.exp(g)


@triton.jit
def correct(state, k, v, beta):
    """The delta rule: what the state already says of a key is taken from its value."""
    return (v - tl.sum(state * k[:, None], 0)) * beta

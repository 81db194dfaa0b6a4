import triton

CONFIGS = [triton.Config({"BV": bv}, num_warps=warps, num_stages=stages) for bv, warps in [(64, 8)] for stages in [1, 2]]

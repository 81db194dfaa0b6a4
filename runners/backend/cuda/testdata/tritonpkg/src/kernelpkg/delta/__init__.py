from .rule import gated_delta_kernel

"""Kernels as packages have them: helpers in modules of their own, tuned by decorators, and a host side that needs torch."""
from .cross_entropy import cross_entropy_kernel
from .matmul import matmul_kernel
from .rope import rope_kernel

__all__ = ["cross_entropy_kernel", "matmul_kernel", "rope_kernel"]

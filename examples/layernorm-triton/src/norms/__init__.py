"""Normalisations in Triton."""
from .layer_norm import layer_norm

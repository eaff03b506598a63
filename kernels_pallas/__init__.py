"""Kernels for NVIDIA GPUs in Pallas; imports jax alone, never jaxalign."""

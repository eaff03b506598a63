"""Kernels of edit distances."""

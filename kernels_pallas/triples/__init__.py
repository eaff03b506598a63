"""Kernels of three sequences."""

"""Kernels of two sequences."""

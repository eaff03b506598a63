"""Kernels of soft alignment."""

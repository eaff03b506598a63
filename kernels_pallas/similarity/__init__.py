"""Kernels of similarities given by position: soft and hard alignment."""

"""Kernels of near rows: pairs of sequences whose letters differ little, by position."""

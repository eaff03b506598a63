"""Kernels of hard alignments of a similarity."""

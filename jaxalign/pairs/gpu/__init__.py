"""Launches of the GPU kernels, and running them."""

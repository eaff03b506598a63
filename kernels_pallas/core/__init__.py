"""Helpers that Pallas lacks and all kernels share."""

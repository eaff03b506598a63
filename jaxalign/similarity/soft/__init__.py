"""Differentiable alignment."""

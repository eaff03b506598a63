"""The best scores of each query: jax only."""

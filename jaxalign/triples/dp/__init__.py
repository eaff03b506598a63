"""The mathematics of three sequences: jax only."""

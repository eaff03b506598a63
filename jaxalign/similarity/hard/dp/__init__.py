"""The mathematics of hard alignment: jax only."""

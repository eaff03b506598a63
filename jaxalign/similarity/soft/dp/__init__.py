"""The mathematics of soft alignment: jax only."""

"""The mathematics: jax only, arrays in, arrays out."""

"""Two sequences."""

"""The best alignment of similarities."""

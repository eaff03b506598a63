"""Three sequences."""

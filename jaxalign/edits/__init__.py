"""Edit distances (Levenshtein)."""

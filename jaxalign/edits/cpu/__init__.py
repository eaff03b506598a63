"""Edit distances on a CPU: pairs and queries in lanes."""

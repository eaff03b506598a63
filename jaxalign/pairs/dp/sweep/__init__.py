"""The form that is fast on a CPU: targets in lanes."""

"""The form that is fast on a CPU: targets in lanes."""

TILE = 16  # columns; half of it is lost on every target, and every tile costs a fold

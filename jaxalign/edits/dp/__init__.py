"""The recurrences of edit distances: arrays in, arrays out."""

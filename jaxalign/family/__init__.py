"""Alignments of a query with its relatives, by iterated exhaustive search."""

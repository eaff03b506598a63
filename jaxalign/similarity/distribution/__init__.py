"""Alignments as a distribution."""

"""Sequences, scorings, alignments and tables: numpy and biotite, no jax."""

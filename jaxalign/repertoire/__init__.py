"""Receptor repertoires: sparse graphs of all CDR3 sequences within a distance."""

"""Bit-parallel words: subsequences, and what edit distances share with them."""

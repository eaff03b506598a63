"""Bit-parallel words: longest common subsequences, and what edit distances share."""

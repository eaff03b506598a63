"""Sequences, scorings, alignments and tables: numpy and biotite, no jax."""

# Result -> the module whose ``write`` writes it. The package enters it, so that nothing
# here has to know the formats, which read what is here.
WRITERS: dict[str, str] = {}

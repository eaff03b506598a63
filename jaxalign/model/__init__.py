"""Sequences, scorings, alignments and tables: numpy and biotite, no jax."""

# Result -> the module that writes it, or knows its columns. The package enters it, so
# that nothing here has to know the formats, which read what is here.
WRITERS: dict[str, str] = {}

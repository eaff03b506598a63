"""Files in and out: FASTA readers and the writers of every result format."""

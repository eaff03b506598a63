"""The mathematics of distances of CDR3 sequences: arrays in, arrays out."""

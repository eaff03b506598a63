"""Which sequences are alike: clusters, deduplication, splits, and their audit."""

"""Which pairs cannot pass a filter, proved without an alignment."""

"""One long pair, block by block, in memory that is linear in its lengths."""

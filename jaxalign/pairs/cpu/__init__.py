"""Windows of the pair matrix, and running them."""

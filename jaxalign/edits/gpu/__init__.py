"""Edit distances on a GPU: launches of the kernels."""

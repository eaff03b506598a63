"""Where and when: which window, which batch, which implementation."""

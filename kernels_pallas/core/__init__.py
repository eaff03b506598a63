"""What Pallas lacks, and what all kernels share."""

"""What an alignment is: numpy and biotite, no jax."""

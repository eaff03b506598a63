"""Large jobs, in parts."""

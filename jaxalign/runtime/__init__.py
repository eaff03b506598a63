"""What runs a job, whatever it aligns: devices, memory, threads."""

"""Devices, memory and threads: the machinery of every job, whatever it aligns."""

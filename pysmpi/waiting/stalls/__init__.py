"""Ranks that wait in C: all others wait for them, because all ranks run in one thread."""

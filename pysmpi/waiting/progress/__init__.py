"""Runs that never end: threads and loops that only let time pass."""

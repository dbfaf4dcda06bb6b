"""Threads of ranks: fibers, their locks and their local data."""

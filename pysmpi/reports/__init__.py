"""Reports of a run: its result, its problems, the waits of its ranks."""

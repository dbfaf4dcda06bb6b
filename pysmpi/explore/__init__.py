"""Interleavings: strategies that decide what MPI leaves open, and the search for failures."""

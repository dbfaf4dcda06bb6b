"""Interleavings: strategies for the choices that MPI leaves open, and the search for failures."""

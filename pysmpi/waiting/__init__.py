"""Waits for what is not MPI."""

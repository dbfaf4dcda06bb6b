"""Collective communication (MPI 4.1, chapter 6)."""

"""Reduction operators and their arithmetic (MPI 4.1, section 6.9)."""

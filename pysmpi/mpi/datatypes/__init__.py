"""Datatypes (MPI 4.1, chapter 5)."""

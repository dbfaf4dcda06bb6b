"""Files (MPI 4.1, chapter 14)."""

"""Point-to-point communication and requests (MPI 4.1, chapters 3 and 4)."""

"""What C code finds of mpi4py: handles as C sees them (MPI 4.1, chapter 19)."""

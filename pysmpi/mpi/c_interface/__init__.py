"""The C interface of mpi4py: handles for C code (MPI 4.1, chapter 19)."""

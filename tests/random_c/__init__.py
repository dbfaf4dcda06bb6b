"""Random programs in C, translated from those in mpi4py, run with pysmpi and with MPICH."""

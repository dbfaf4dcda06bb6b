"""MPI as mpi4py presents it: what a program imports as `mpi4py.MPI`, one file a chapter."""

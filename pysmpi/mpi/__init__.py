"""MPI in the form of mpi4py: the module `mpi4py.MPI` of programs, one package for each chapter."""

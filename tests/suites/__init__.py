"""Suites of wrong MPI programs in C, translated to mpi4py and run under all checkers."""

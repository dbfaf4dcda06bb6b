"""Loading a program once for each rank: its command line, its modules, its MPI."""

"""The codes in C of the MPI Bugs Initiative under all checkers."""

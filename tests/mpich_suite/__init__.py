"""MPICH's own tests in C, as SimGrid publishes them, run with pysmpi and with MPICH."""

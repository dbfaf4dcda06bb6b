"""The MPI library that compiled programs call: its table of functions and its entry points in C."""

"""Groups, what the processes of a communicator share, and how they agree (MPI 4.1, 7.3)."""

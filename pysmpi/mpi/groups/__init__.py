"""Groups, the shared state of communicators, and agreement (MPI 4.1, 7.3)."""

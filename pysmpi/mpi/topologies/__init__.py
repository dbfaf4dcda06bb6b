"""Virtual topologies (MPI 4.1, chapter 8)."""

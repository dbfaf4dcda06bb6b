"""One-sided communication (MPI 4.1, chapter 12)."""

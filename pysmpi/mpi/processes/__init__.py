"""Start and end of MPI, sessions, and processes that join (MPI 4.1, chapter 11)."""

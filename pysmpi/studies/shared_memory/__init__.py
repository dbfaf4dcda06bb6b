"""Studies of transfers through shared memory."""

PAPER = "Putigny et al., Analysis of MPI Shared-Memory Communication Performance (2014)"

"""Virtual time: events, shared resources, matching, protocols, steps. Knows nothing of MPI."""

"""Virtual time: events, shared resources, matching, protocols, steps. Independent of MPI."""

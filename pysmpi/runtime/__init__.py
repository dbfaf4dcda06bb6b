"""Programs of ranks, and the state that each rank has for itself."""

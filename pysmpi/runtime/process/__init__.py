"""What a process owns, for each rank of the one process that there is."""

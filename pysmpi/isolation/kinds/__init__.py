"""The state of a process, kept for each rank of the one real process."""
